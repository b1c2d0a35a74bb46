"""Health asked over a real adbd, where the device's `dumpsys` prints what phones print."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from builder_bridge.adb import connect
from builder_bridge.box import Box
from builder_bridge.bridge import open_bridge
from builder_bridge.health import Health

pytestmark = [pytest.mark.box, pytest.mark.anyio]
CASES = Path(__file__).parents[1] / "cases/health"


@pytest.fixture
def dumpsys(fake_box: Box) -> Iterator[Path]:
    """A `dumpsys` for the box that prints what lies beside it, one file a service."""
    folder = fake_box.root / "data/local/tmp/dumps"
    program = fake_box.root / "system/bin/dumpsys"
    folder.mkdir()
    program.write_text('#!/system/bin/sh\ncat /data/local/tmp/dumps/"$1"\n')
    program.chmod(0o755)
    yield folder
    program.unlink()
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


async def health_of(box: Box, memory: Path) -> Health:
    async with connect(box.serial) as adb, open_bridge(adb, memory=memory) as bridge:
        return await bridge.health()


async def test_a_phone_is_asked_by_its_shell_how_it_feels(
    fake_box: Box, dumpsys: Path, tmp_path: Path
) -> None:
    printed = (CASES / "android-14-xiaomi.txt").read_text()
    battery, thermal = printed.partition("== thermal\n")[::2]
    (dumpsys / "battery").write_text(battery.partition("\n")[2])
    (dumpsys / "thermalservice").write_text(thermal.partition("== storage\n")[0])
    health = await health_of(fake_box, tmp_path)
    assert (health.battery_percent, health.is_charging, health.heat_celsius) == (65, True, 37.7)
    assert health.thermal_status == 1
    assert (health.free_bytes or 0) > 0, "free storage is the box's own"
    (dumpsys / "battery").write_text("Can't find service: battery\n" + "history: 1\n" * 20_000)
    assert (await health_of(fake_box, tmp_path)).battery_percent is None


async def test_a_phone_without_dumpsys_says_what_it_can(fake_box: Box, tmp_path: Path) -> None:
    assert (await health_of(fake_box, tmp_path)).unknown == ("battery", "heat")
