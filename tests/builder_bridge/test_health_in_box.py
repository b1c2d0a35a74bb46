"""Health asked over a real adbd, of a device whose tools print what phones print."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from builder_bridge.adb import connect
from builder_bridge.box import Box
from builder_bridge.bridge import open_bridge
from builder_bridge.health import Health

pytestmark = [pytest.mark.box, pytest.mark.anyio]
CASES = Path(__file__).parents[1] / "cases/health"


@pytest.fixture
def put_dumpsys(fake_box: Box) -> Iterator[Callable[[str], None]]:
    """Put a script in the place of the box's `dumpsys`, which is as it was when the test has ended."""
    program = fake_box.root / "system/bin/dumpsys"
    before = program.read_text()

    def put(script: str) -> None:
        program.write_text(f"#!/system/bin/sh\n{script}")

    yield put
    program.write_text(before)


async def health_of(box: Box, memory: Path) -> Health:
    async with connect(box.serial) as adb, open_bridge(adb, memory=memory) as bridge:
        return await bridge.health()


async def test_a_phone_is_asked_by_its_shell_how_it_feels(fake_box: Box, tmp_path: Path) -> None:
    health = await health_of(fake_box, tmp_path)
    assert health == Health(87, True, 28.9, 0, health.free_bytes)
    assert (health.free_bytes or 0) > 0, "free storage is the box's own"


async def test_a_maker_may_print_pages_of_history_and_a_service_may_be_missing(
    fake_box: Box, put_dumpsys: Callable[[str], None], tmp_path: Path
) -> None:
    printed = (CASES / "android-14-xiaomi.txt").read_text().partition("== thermal")[0].partition("\n")[2]
    missing = '[ $1 = battery ] || { echo "Can\'t find service: $1"; exit 20; }\n'
    put_dumpsys(f"{missing}cat <<'EOF'\n{printed}EOF\nseq 1 200000\n")
    health = await health_of(fake_box, tmp_path)
    assert (health.battery_percent, health.is_charging, health.heat_celsius) == (65, True, 37.7)
    assert health.thermal_status is None
    put_dumpsys("exit 1\n")
    assert (await health_of(fake_box, tmp_path)).unknown == ("battery", "heat")
