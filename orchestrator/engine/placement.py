"""Which waiting build goes to which free phone: the whole policy, as a pure function.

Order: priority class, then the owner who has least under way, then age. Of the phones that fit, the
one that built this project most lately is taken first, for it has the blobs and warm caches.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from builder_bridge.health import THERMAL_WORDS
from orchestrator.settings import PhoneCare
from orchestrator.store.records import BuildRow, PhoneRow

STALE_AFTER = 2.0
"""After how many of `health_every_s` what a phone said of its health counts no more; the watch of its own
host asks after one, so hosts whose clocks differ a little agree."""

RECENT_PROJECTS = 16
"""How many projects a phone is remembered to have built; older ones are seldom still warm there."""

PRIORITIES = {"urgent": 1, "normal": 2, "background": 3}
"""Priority classes by name; a lower number goes first."""


@dataclass(frozen=True, slots=True)
class Placement:
    """A build that gets a phone."""

    build_id: str
    address: str


@dataclass(frozen=True, slots=True)
class Placing:
    """What was decided: who gets which phone, and why each of the others still waits.

    `is_health_awaited` says that a free phone would have been taken had it said lately how it feels.
    """

    placements: tuple[Placement, ...]
    reasons: Mapping[str, str]
    is_health_awaited: bool = False


def place(
    waiting: Sequence[BuildRow],
    phones: Sequence[PhoneRow],
    under_way: Mapping[str, int],
    care: PhoneCare,
    now_s: float,
) -> Placing:
    """Decide over all waiting builds at once.

    `under_way` counts running builds by owner. One build that no phone fits never holds up another.
    """
    busy = Counter(under_way)
    free = {phone.address: phone for phone in phones if phone.build_id is None and phone.stop_run is None}

    def rank(build: BuildRow) -> tuple[int, int, float, str]:
        return build.priority, busy[build.owner], build.created_s, build.id

    left = sorted(waiting, key=rank)
    placements: list[Placement] = []
    reasons: dict[str, str] = {}
    is_health_awaited = False
    while left:
        build = left.pop(0)
        unfit = {phone.address: why_not(build, phone, care, now_s) for phone in phones}
        is_health_awaited |= _HEALTH_AWAITED in unfit.values()
        chosen = _best(build, free.values(), unfit)
        if chosen is None:
            reasons[build.id] = _why_waiting(build, phones, unfit)
            continue
        placements.append(Placement(build.id, chosen.address))
        del free[chosen.address]
        busy[build.owner] += 1
        left.sort(key=rank)
    return Placing(tuple(placements), reasons, is_health_awaited)


def _best(build: BuildRow, free: Iterable[PhoneRow], unfit: Mapping[str, str | None]) -> PhoneRow | None:
    """Choose the warmest phone that fits; one that is warm and only has to be asked is worth the moment."""
    ranked = sorted(free, key=lambda phone: (coldness(phone, build), phone.address))
    for phone in ranked:
        why = unfit[phone.address]
        if why is None:
            return phone
        if why == _HEALTH_AWAITED and coldness(phone, build) < RECENT_PROJECTS:
            return None
    return None


def coldness(phone: PhoneRow, build: BuildRow) -> int:
    """Say how many projects a phone has built since this one; `RECENT_PROJECTS` where it never did."""
    recent = (phone.last_project or "").split("\n")
    key = project_key(build)
    return recent.index(key) if key in recent else RECENT_PROJECTS


def recent_projects(phone: PhoneRow, build: BuildRow) -> str:
    """Give what is remembered of a phone once it builds this, the latest project first."""
    key = project_key(build)
    others = [each for each in (phone.last_project or "").split("\n") if each not in ("", key)]
    return "\n".join([key, *others][:RECENT_PROJECTS])


def project_key(build: BuildRow) -> str:
    """Name what a phone keeps warm of a build: the project of its owner."""
    return f"{build.owner}/{build.project}"


def why_not(build: BuildRow, phone: PhoneRow, care: PhoneCare, now_s: float) -> str | None:
    """Say why a phone can not take a build, be it free or not; None where it can.

    A free phone that has not said for a while how it feels is asked first: a build may have heated it.
    """
    if build.phone is not None:
        if not phone.is_named(build.phone):
            return "it is not the phone that was asked for"
    elif phone.pool != build.pool:
        return f"it is not in pool {build.pool}"
    if build.spec.get("host") not in (None, phone.host):
        return f"the build's secrets lie on host {build.spec['host']}, and it is attached to {phone.host}"
    if phone.state != "online":
        return f"it is {phone.state}" + (f": {phone.reason}" if phone.reason else "")
    unmatched = _why_unmatched(build.needs, phone)
    if unmatched is not None:
        return unmatched
    if phone.build_id is None and not is_fresh(phone, now_s, STALE_AFTER * care.health_every_s):
        return _HEALTH_AWAITED
    return why_unwell(phone.health or {}, care)


def could_take(build: BuildRow, phone: PhoneRow) -> bool:
    """Say whether a phone fits a build, once it is free, online and well."""
    is_meant = phone.is_named(build.phone) if build.phone is not None else phone.pool == build.pool
    is_meant = is_meant and build.spec.get("host") in (None, phone.host)
    return is_meant and _why_unmatched(build.needs, phone) is None


def is_fresh(phone: PhoneRow, now_s: float, max_age_s: float) -> bool:
    """Whether what is known of a phone's health is at most so old."""
    asked_s = (phone.health or {}).get("asked_s")
    return asked_s is not None and now_s - asked_s <= max_age_s


def standing(phone: PhoneRow, care: PhoneCare) -> str:
    """Say in a word how a phone stands: busy, resting, or whether it answers."""
    if phone.build_id is not None:
        return "busy"
    is_resting = phone.state == "online" and why_unwell(phone.health or {}, care) is not None
    return "resting" if is_resting else phone.state


def why_unwell(health: Mapping[str, Any], care: PhoneCare) -> str | None:
    """Say why a phone should rest: low battery off the charger, heat, little storage.

    What a phone did not tell of itself is no reason.
    """
    battery, charging = health.get("battery_percent"), health.get("is_charging")
    if battery is not None and battery < care.min_battery_percent and charging is not True:
        return f"its battery is at {battery} % and it is not charging"
    heat = health.get("heat_celsius")
    if heat is not None and heat > care.max_heat_celsius:
        return f"it is {heat:.0f} °C hot"
    throttled = health.get("thermal_status")
    if throttled is not None and throttled > care.max_thermal_status:
        return f"Android slows it down because it is hot (thermal status {THERMAL_WORDS[throttled]})"
    free = health.get("free_bytes")
    if free is not None and free < care.min_free_bytes:
        return f"it has only {free >> 20} MiB of storage left"
    return None


_HEALTH_AWAITED = "it is being asked how it feels"


def _at_least(wanted: Any, offered: Any) -> bool:
    return _major(offered) >= _major(wanted)


def _major(version: Any) -> int:
    digits = "".join(takewhile(str.isdigit, str(version)))
    return int(digits) if digits else 0


def _equal(wanted: Any, offered: Any) -> bool:
    return str(wanted) == str(offered)


def _among(wanted: Any, offered: Any) -> bool:
    wishes: Iterable[Any] = wanted if isinstance(wanted, list) else [wanted]
    return {str(wish) for wish in wishes} <= {str(offer) for offer in offered}


_MATCHERS: Mapping[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "abi": ("abi", _equal),
    "api_level": ("api_level", _at_least),
    "jdk": ("jdk", _at_least),
    "gradle": ("gradle", _equal),
    "platforms": ("platforms", _among),
    "agp": ("agp", _among),
    "free_bytes": ("free_bytes", _at_least),
}
"""What a build may need → where contract or health say what the phone offers, and what counts as enough."""

NEEDS = frozenset(_MATCHERS)
"""The names that a build's needs may use."""


def _why_unmatched(needs: Mapping[str, Any], phone: PhoneRow) -> str | None:
    offers = {**(phone.health or {}), **(phone.contract or {})}
    for need, wanted in needs.items():
        key, is_enough = _MATCHERS[need]
        offered = offers.get(key)
        if offered is not None and not is_enough(wanted, offered):
            return f"it offers {key} {_shown(offered)}, the build needs {_shown(wanted)}"
    return None


def _shown(value: Any) -> str:
    return ", ".join(str(each) for each in value) if isinstance(value, list) else str(value)


def _why_waiting(build: BuildRow, phones: Sequence[PhoneRow], unfit: Mapping[str, str | None]) -> str:
    asked = [phone for phone in phones if unfit[phone.address] == _HEALTH_AWAITED]
    warm = next((phone for phone in asked if coldness(phone, build) < RECENT_PROJECTS), None)
    if warm is not None:
        return f"phone {warm.address}: {_HEALTH_AWAITED}"
    able = [phone for phone in phones if unfit[phone.address] is None]
    if able:
        return "all phones that fit are busy" if len(able) > 1 else f"{able[0].address} is busy"
    if build.phone is not None:
        why = [unfit[phone.address] for phone in phones if phone.is_named(build.phone)]
        return f"phone {build.phone}: {why[0]}" if why else f"no phone is called {build.phone}"
    pool = [phone for phone in phones if phone.pool == build.pool]
    if not pool:
        return f"no phone is in pool {build.pool}"
    return "; ".join(f"phone {phone.address}: {unfit[phone.address]}" for phone in pool[:4])
