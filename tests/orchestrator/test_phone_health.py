"""A phone is asked how it feels, and one that is not well gets no build until it is better."""

from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.status import health_text
from orchestrator.store import phones as phone_store
from tests.orchestrator.conftest import Running, Start
from tests.orchestrator.test_builds import ended, submit, until
from tests.orchestrator.waiting import eventually
from tests.orchestrator.workspaces import make_workspace

pytestmark = pytest.mark.anyio
CASES = Path(__file__).parents[1] / "cases/health"


def let_feel(phones: Path, name: str, case: str) -> None:
    """Let the Android of a phone print what a case holds."""
    (phones / name).mkdir(parents=True, exist_ok=True)
    (phones / name / "health.txt").write_text((CASES / f"{case}.txt").read_text())


async def phone_of(running: Running, name: str) -> dict[str, Any]:
    found = (await running.http.get("/v1/phones")).json()["phones"]
    phone: dict[str, Any] = next(each for each in found if each["address"] == name)
    return phone


async def test_a_hot_and_empty_phone_rests_until_it_is_better_and_everybody_is_told(
    start: Start, projects: Path, tmp_path: Path
) -> None:
    let_feel(tmp_path / "phones", "p1", "android-11-samsung-hot")
    async with start("p1") as running:
        build_id = (await submit(running, make_workspace(projects / "w")))["id"]
        why = "its battery is at 12 % and it is not charging"

        async def rests() -> bool:
            build = (await running.http.get(f"/v1/builds/{build_id}")).json()
            return bool(build["reason"] == f"phone p1: {why}")

        await eventually(rests)
        phone = await phone_of(running, "p1")
        assert (phone["state"], phone["resting"]) == ("online", why)
        assert phone["health"]["heat_celsius"] == 46.8
        assert phone["health"]["unknown"] == []
        assert (await running.http.get("/v1/status")).json()["phones"] == {"resting": 1}
        figures = (await running.http.get("/metrics")).text
        assert 'pocketbuild_phones{state="resting"} 1.0' in figures
        assert 'pocketbuild_phone_battery_percent{phone="p1"} 12.0' in figures
        assert 'pocketbuild_phone_thermal_status{phone="p1"} 3.0' in figures
        let_feel(running.phones, "p1", "android-10-pixel")
        assert (await running.http.post("/v1/phones", json={"address": "p1"})).status_code == 201
        assert (await ended(running, build_id))["outcome"] == "succeeded"
        assert (await phone_of(running, "p1"))["resting"] is None


async def test_a_phone_that_tells_nothing_of_its_health_builds(start: Start, projects: Path) -> None:
    async with start("p1") as running:
        build_id = (await submit(running, make_workspace(projects / "w")))["id"]
        assert (await ended(running, build_id))["outcome"] == "succeeded"
        phone = await phone_of(running, "p1")
        assert phone["health"]["unknown"] == ["battery", "heat", "storage"]
        assert phone["resting"] is None
        assert "pocketbuild_phone_battery_percent{" not in (await running.http.get("/metrics")).text


async def test_after_a_long_build_a_phone_is_asked_before_it_gets_the_next(
    start: Start, projects: Path
) -> None:
    async with start("p1") as running:
        slow = make_workspace(projects / "slow", held_attempt=1)
        first = (await submit(running, slow))["id"]
        await until(running, first, "gradle")
        asked = running.phones / "p1/asked.log"
        before = asked.read_text().count("health")
        database = running.service.stores.database
        await database.run(lambda c: phone_store.update(c, "p1", health={"asked_s": 0.0}))
        let_feel(running.phones, "p1", "android-16-emulator-by-hand")
        second = (await submit(running, make_workspace(projects / "next", text="next")))["id"]
        (running.phones / "p1/runs" / f"{first}-1" / "hold").unlink()
        await ended(running, first)

        async def rests() -> bool:
            build = (await running.http.get(f"/v1/builds/{second}")).json()
            return "its battery is at 5 %" in (build["reason"] or "")

        await eventually(rests)
        assert asked.read_text().count("health") > before
        let_feel(running.phones, "p1", "android-14-xiaomi")
        await running.http.post("/v1/phones", json={"address": "p1"})
        assert (await ended(running, second))["outcome"] == "succeeded"


@pytest.mark.parametrize(
    ("health", "text"),
    [
        (
            {"battery_percent": 97, "is_charging": True, "heat_celsius": 27.3, "thermal_status": 0,
             "free_bytes": 45 << 30, "unknown": [], "is_set_by_hand": False},
            "battery 97 % and charging; 27 °C; thermal status none; 45.0 GiB free",
        ),
        (
            {"battery_percent": 5, "is_charging": False, "is_set_by_hand": True, "unknown": ["heat"]},
            "battery 5 % and not charging; held at these values by hand; unknown: heat",
        ),
        ({"unknown": ["battery", "heat"], "free_bytes": None}, "unknown: battery, heat"),
        ({"free_memory_bytes": 1}, ""),
    ],
)  # fmt: skip
def test_a_person_reads_how_a_phone_feels_in_a_line(health: dict[str, Any], text: str) -> None:
    assert health_text(health) == text
