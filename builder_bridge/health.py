"""How a phone feels, from what Android prints: `dumpsys battery`, `dumpsys thermalservice`, `df`.

Pure: `ASK` is a line for the phone's shell, `read_health` reads what it printed, on Android 10 to 16.
What a phone does not tell, or tells in another form, is unknown (None) and never a guess.
"""

import re
from dataclasses import dataclass

ASK = (
    "echo '== battery'; dumpsys battery 2>/dev/null | head -n 100;"
    " echo '== thermal'; dumpsys thermalservice 2>/dev/null;"
    " echo '== storage'; df -k /data 2>/dev/null"
)
"""Asks for all of it at once. Some makers print pages of history after the battery's state."""

THERMAL_WORDS = ("none", "light", "moderate", "severe", "critical", "emergency", "shutdown")
"""Android's names of the thermal states 0 to 6."""

_SECTION = re.compile(r"^== (\w+)$", re.MULTILINE)
_SENSOR = re.compile(r"Temperature\{mValue=(?P<value>-?\d+(?:\.\d+)?),[^}]*mName=(?P<name>[^,}]*)")
_CHARGING, _FULL, _DISCHARGING, _NOT_CHARGING = 2, 5, 3, 4
_PLAUSIBLE_CELSIUS = (-40.0, 150.0)


@dataclass(frozen=True, slots=True)
class Health:
    """A phone of the moment; None is what it did not tell.

    `heat_celsius` is the battery's, `thermal_status` Android's own 0 (none) to 6 (shutdown), as
    `PowerManager` counts it. `is_set_by_hand` says that somebody holds battery or thermal state at
    a value (`dumpsys battery set`, `cmd thermalservice override-status`): tests do so.
    """

    battery_percent: int | None = None
    is_charging: bool | None = None
    heat_celsius: float | None = None
    thermal_status: int | None = None
    free_bytes: int | None = None
    is_set_by_hand: bool = False

    @property
    def unknown(self) -> tuple[str, ...]:
        """What the phone told nothing of: of battery, heat and storage."""
        has_heat = self.heat_celsius is not None or self.thermal_status is not None
        told = {
            "battery": self.battery_percent is not None,
            "heat": has_heat,
            "storage": self.free_bytes is not None,
        }
        return tuple(name for name, is_told in told.items() if not is_told)


def read_health(text: str) -> Health:
    """Read what the shell line `ASK` printed; never raises, whatever it is."""
    parts = _SECTION.split(text.replace("\r\n", "\n"))
    sections = dict(zip(parts[1::2], parts[2::2], strict=False))
    battery, thermal = sections.get("battery", ""), sections.get("thermal", "")
    # A phone on a bench supply has no battery, and its level is a constant.
    has_battery = _word(battery, "present") != "false"
    heat_celsius = _battery_celsius(battery) if has_battery else None
    return Health(
        battery_percent=_percent(battery) if has_battery else None,
        is_charging=_is_charging(battery) if has_battery else None,
        heat_celsius=_sensor_celsius(thermal) if heat_celsius is None else heat_celsius,
        thermal_status=_thermal_status(thermal),
        free_bytes=_free_bytes(sections.get("storage", "")),
        is_set_by_hand="UPDATES STOPPED" in battery or _word(thermal, "IsStatusOverride") == "true",
    )


def _word(text: str, key: str) -> str | None:
    """Give the value of the first line `key: value`."""
    found = re.search(rf"^[ \t]*{re.escape(key)}:[ \t]*(\S+)[ \t]*$", text, re.MULTILINE)
    return None if found is None else found[1]


def _number(text: str, key: str) -> int | None:
    word = _word(text, key)
    is_number = word is not None and re.fullmatch(r"-?[0-9]{1,9}", word) is not None
    return int(word) if is_number and word is not None else None


def _percent(battery: str) -> int | None:
    level, scale = _number(battery, "level"), _number(battery, "scale") or 100
    if level is None or not 0 <= level <= scale:
        return None
    return level * 100 // scale


def _is_charging(battery: str) -> bool | None:
    """Say whether the battery fills: on a weak USB port it may be powered and drain all the same."""
    status = _number(battery, "status")
    if status in (_CHARGING, _FULL):
        return True
    if status in (_DISCHARGING, _NOT_CHARGING):
        return False
    powered = re.findall(r"^[ \t]*(?:AC|USB|Wireless|Dock) powered:[ \t]*(\w+)", battery, re.MULTILINE)
    return "true" in powered if powered else None


def _battery_celsius(battery: str) -> float | None:
    tenths = _number(battery, "temperature")
    return None if tenths is None else _plausible(tenths / 10)


def _sensor_celsius(thermal: str) -> float | None:
    """Give the battery's sensor; what the HAL says now goes before what is cached."""
    _, _, now = thermal.partition("Current temperatures from HAL:")
    for block in (now.partition("Current cooling devices")[0], thermal):
        for sensor in _SENSOR.finditer(block):
            if sensor["name"].lower().removeprefix("type_") in ("battery", "bat"):
                celsius = _plausible(float(sensor["value"]))
                if celsius is not None:
                    return celsius
    return None


def _plausible(celsius: float) -> float | None:
    """Leave out what sensors say that do not work: -99.9, 0x7fffffff and the like."""
    low, high = _PLAUSIBLE_CELSIUS
    return celsius if low <= celsius <= high else None


def _thermal_status(thermal: str) -> int | None:
    """Give Android's thermal state; without a thermal HAL it stands at 0 for ever and says nothing."""
    is_overridden = _word(thermal, "IsStatusOverride") == "true"
    if _word(thermal, "HAL Ready") == "false" and not is_overridden:
        return None
    status = _number(thermal, "Thermal Status")
    return status if status is not None and 0 <= status < len(THERMAL_WORDS) else None


def _free_bytes(storage: str) -> int | None:
    """Read the fourth column of `df -k`; a long name of a device may stand on a line of its own."""
    words = " ".join(storage.strip().splitlines()[1:]).split()
    return int(words[3]) << 10 if len(words) >= 6 and re.fullmatch(r"[0-9]{1,15}", words[3]) else None
