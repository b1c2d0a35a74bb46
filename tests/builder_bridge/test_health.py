"""Health is read from what real phones print, and what they do not print is unknown."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder_bridge.health import Health, read_health

CASES = Path(__file__).parents[1] / "cases/health"
EXPECTED = {
    "android-10-pixel": Health(97, True, 27.3, 0, 90794584 << 10),
    "android-11-samsung-hot": Health(12, False, 46.8, 3, 106496 << 10),
    "android-14-xiaomi": Health(65, True, 37.7, 1, 344449228 << 10),
    "android-16-emulator-by-hand": Health(5, False, 25.0, 4, 4632976 << 10, is_set_by_hand=True),
    "android-12-bench-supply": Health(None, None, None, None, 43132412 << 10),
    "no-dumpsys": Health(None, None, None, None, 29113256 << 10),
}


def text_of(name: str) -> str:
    return (CASES / f"{name}.txt").read_text()


def test_every_case_has_an_expectation() -> None:
    assert {path.stem for path in CASES.glob("*.txt")} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_what_a_phone_prints_is_read(name: str) -> None:
    assert read_health(text_of(name)) == EXPECTED[name]


@pytest.mark.parametrize("name", EXPECTED)
def test_line_ends_of_a_terminal_change_nothing(name: str) -> None:
    assert read_health(text_of(name).replace("\n", "\r\n")) == EXPECTED[name]


@pytest.mark.parametrize(
    ("health", "unknown"),
    [
        (Health(), ("battery", "heat", "storage")),
        (Health(50, True, None, 0, 1), ()),
        (Health(50, True, 30.0, None, None), ("storage",)),
    ],
)
def test_what_was_not_told_is_named(health: Health, unknown: tuple[str, ...]) -> None:
    assert health.unknown == unknown


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("AC powered: true\n  status: 1", True),
        ("AC powered: false\n  USB powered: false\n  status: 1", False),
        ("USB powered: true\n  status: 3", False),
        ("USB powered: true\n  status: 5", True),
        ("nothing: 1", None),
    ],
)
def test_a_phone_charges_when_its_battery_fills_not_when_a_cable_is_in(
    line: str, expected: bool | None
) -> None:
    assert read_health(f"== battery\n  {line}\n").is_charging is expected


@pytest.mark.parametrize("value", ["level: 101", "level: -1", "level: x", "level: 99999999999"])
def test_an_impossible_level_is_unknown(value: str) -> None:
    assert read_health(f"== battery\n  {value}\n  scale: 100\n").battery_percent is None


def test_a_sensor_stands_in_for_a_battery_that_does_not_tell_its_heat() -> None:
    sensor = "Temperature{mValue=41.5, mType=2, mName=BAT, mStatus=0}"
    broken = "Temperature{mValue=-99.9, mType=2, mName=battery, mStatus=0}"
    dump = f"== thermal\nCurrent temperatures from HAL:\n\t{broken}\n\t{sensor}\n"
    assert read_health(dump).heat_celsius == 41.5


@given(st.text(max_size=400))
def test_no_text_is_an_error(text: str) -> None:
    assert isinstance(read_health(text), Health)
    assert isinstance(read_health(f"== battery\n{text}\n== thermal\n{text}\n== storage\n{text}"), Health)


@given(st.integers(0, 500))
def test_a_dump_that_was_cut_gives_fewer_values_never_others(length: int) -> None:
    whole = EXPECTED["android-10-pixel"]
    cut = read_health(text_of("android-10-pixel")[:length].rpartition("\n")[0] + "\n")
    assert cut.battery_percent in (None, whole.battery_percent)
    assert cut.heat_celsius in (None, whole.heat_celsius)
    assert cut.is_charging is whole.is_charging or cut.battery_percent is None
