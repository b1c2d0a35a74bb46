from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.engine.placement import (
    RECENT_PROJECTS,
    could_take,
    place,
    project_key,
    recent_projects,
    why_not,
    why_unwell,
)
from orchestrator.settings import PhoneCare
from orchestrator.store.records import BuildRow, PhoneRow

CARE = PhoneCare()
NOW_S = 1_000_000.0
FELT: dict[str, Any] = {"asked_s": NOW_S}


def build(build_id: str, **values: Any) -> BuildRow:
    row: dict[str, Any] = dict.fromkeys(BuildRow.__slots__)
    row |= {"id": build_id, "owner": "ann", "project": "app", "pool": "default", "priority": 2, "needs": {}}
    row["spec"] = {}
    row |= {"created_s": float(build_id[1:])} if build_id[1:].isdigit() else {"created_s": 0.0}
    return BuildRow(**(row | values))


def phone(address: str, **values: Any) -> PhoneRow:
    row: dict[str, Any] = dict.fromkeys(PhoneRow.__slots__)
    row |= {
        "address": address,
        "host": "local",
        "pool": "default",
        "state": "online",
        "serial": f"S{address}",
    }
    return PhoneRow(**(row | values | {"health": FELT | (values.get("health") or {})}))


def placed(waiting: list[BuildRow], phones: list[PhoneRow], **busy: int) -> list[tuple[str, str]]:
    return [(each.build_id, each.address) for each in place(waiting, phones, busy, CARE, NOW_S).placements]


def test_an_urgent_build_overtakes_and_age_decides_among_equals() -> None:
    waiting = [build("b1"), build("b2", priority=1), build("b3", priority=3)]
    assert placed(waiting, [phone("p1"), phone("p2")]) == [("b2", "p1"), ("b1", "p2")]


def test_an_owner_with_less_under_way_goes_first_within_a_class() -> None:
    waiting = [build("b1"), build("b2"), build("b3", owner="bob")]
    assert placed(waiting, [phone("p1")], ann=1) == [("b3", "p1")]
    assert placed(waiting, [phone("p1"), phone("p2")]) == [("b1", "p1"), ("b3", "p2")]


def test_the_phone_that_built_the_project_last_is_taken_first() -> None:
    wish = build("b1")
    phones = [phone("p1"), phone("p2", last_project=project_key(wish))]
    assert placed([wish], phones) == [("b1", "p2")]


def test_a_phone_that_built_the_project_some_time_ago_is_taken_before_one_that_never_did() -> None:
    wish, other = build("b1"), build("b2", project="other")
    once = phone("p2", last_project=recent_projects(phone("x"), wish))
    then = phone("p2", last_project=recent_projects(once, other))
    assert placed([wish], [phone("p1"), then]) == [("b1", "p2")]
    just = phone("p3", last_project=project_key(wish))
    assert placed([wish], [phone("p1"), then, just]) == [("b1", "p3")]
    recent = then
    for number in range(RECENT_PROJECTS):
        recent = phone("p2", last_project=recent_projects(recent, build("b", project=f"n{number}")))
    assert placed([wish], [phone("p1"), recent]) == [("b1", "p1")]


def test_a_warm_phone_is_worth_the_moment_in_which_it_is_asked_how_it_feels() -> None:
    wish = build("b1")
    old = {"asked_s": NOW_S - 2 * CARE.health_every_s - 1}
    warm = phone("p2", last_project=project_key(wish), health=old)
    waiting = [wish, build("b2", project="other")]
    decided = place(waiting, [phone("p1"), warm], {}, CARE, NOW_S)
    assert [(each.build_id, each.address) for each in decided.placements] == [("b2", "p1")]
    assert decided.is_health_awaited
    assert decided.reasons["b1"] == "phone p2: it is being asked how it feels"


def test_a_build_that_fits_no_phone_holds_up_no_other_and_says_why_it_waits() -> None:
    waiting = [build("b1", needs={"jdk": 25}), build("b2")]
    decided = place(waiting, [phone("p1", contract={"jdk": "21.0.4"})], {}, CARE, NOW_S)
    assert [each.build_id for each in decided.placements] == ["b2"]
    assert decided.reasons["b1"] == "phone p1: it offers jdk 21.0.4, the build needs 25"


def test_leased_and_fenced_phones_are_not_given_away() -> None:
    phones = [phone("p1", build_id="other"), phone("p2", stop_run="other-1")]
    decided = place([build("b1")], phones, {}, CARE, NOW_S)
    assert decided.placements == ()
    assert decided.reasons["b1"] == "all phones that fit are busy"


@pytest.mark.parametrize(
    ("wish", "offer", "reason"),
    [
        ({"phone": "Sp1"}, {}, None),
        ({"phone": "p9"}, {}, "it is not the phone that was asked for"),
        ({"pool": "fast"}, {}, "it is not in pool fast"),
        ({"phone": "p1", "pool": "fast"}, {}, None),
        ({}, {"pool": None}, "it is not in pool default"),
        ({"phone": "p1"}, {"pool": None}, None),
        ({}, {"state": "offline", "reason": "refused"}, "it is offline: refused"),
        ({}, {"health": {"battery_percent": 9}}, "its battery is at 9 % and it is not charging"),
        ({"needs": {"platforms": ["android-36"]}}, {"contract": {"platforms": ["android-34"]}},
         "it offers platforms android-34, the build needs android-36"),
        ({"needs": {"platforms": "android-34", "jdk": 17, "abi": "arm64-v8a"}},
         {"contract": {"platforms": ["android-34"], "jdk": "17.0.9", "abi": "arm64-v8a"}}, None),
        ({"needs": {"free_bytes": 2 << 30}}, {"health": {"free_bytes": 1 << 30}},
         "it offers free_bytes 1073741824, the build needs 2147483648"),
        ({"needs": {"free_bytes": 2 << 30}}, {"health": {"free_bytes": None}}, None),
        ({"needs": {"api_level": 33}}, {"contract": {"api_level": 30}},
         "it offers api_level 30, the build needs 33"),
    ],
)  # fmt: skip
def test_why_a_phone_does_not_fit(wish: dict[str, Any], offer: dict[str, Any], reason: str | None) -> None:
    assert why_not(build("b1", **wish), phone("p1", **offer), CARE, NOW_S) == reason


@pytest.mark.parametrize(
    ("health", "is_well"),
    [
        ({}, True),
        ({"battery_percent": 5, "is_charging": True}, True),
        ({"battery_percent": 5, "is_charging": None}, False),
        ({"heat_celsius": 50.0}, False),
        ({"heat_celsius": 30.0, "thermal_status": 3}, False),
        ({"heat_celsius": 44.9, "thermal_status": 2}, True),
        ({"battery_percent": None, "heat_celsius": None, "thermal_status": None}, True),
        ({"free_bytes": 1 << 20}, False),
        ({"free_bytes": None}, True),
    ],
)
def test_a_phone_that_is_not_well_rests(health: dict[str, Any], is_well: bool) -> None:
    assert (why_unwell(health, CARE) is None) == is_well


def test_a_free_phone_that_was_not_asked_lately_how_it_feels_is_asked_before_it_builds() -> None:
    old = {"asked_s": NOW_S - 2 * CARE.health_every_s - 1}
    decided = place([build("b1")], [phone("p1", health=old)], {}, CARE, NOW_S)
    assert (decided.placements, decided.is_health_awaited) == ((), True)
    assert decided.reasons["b1"] == "phone p1: it is being asked how it feels"
    felt = place([build("b1")], [phone("p1", health=old), phone("p2")], {}, CARE, NOW_S)
    assert [each.address for each in felt.placements] == ["p2"]
    unfit = place(
        [build("b1", needs={"jdk": 25})], [phone("p1", health=old, contract={"jdk": 17})], {}, CARE, NOW_S
    )
    assert not unfit.is_health_awaited, "a phone that cannot build it anyway is left alone"
    busy = place([build("b1")], [phone("p1", health=old, build_id="b0")], {}, CARE, NOW_S)
    assert (busy.reasons["b1"], busy.is_health_awaited) == ("p1 is busy", False)


@given(
    st.lists(st.tuples(st.sampled_from("xyz"), st.integers(1, 3), st.sampled_from(["default", "fast"]))),
    st.lists(st.tuples(st.sampled_from(["default", "fast", None]), st.booleans()), max_size=6),
)
def test_nobody_gets_two_phones_and_no_fitting_phone_stays_idle(
    wishes: list[tuple[str, int, str]], offers: list[tuple[str | None, bool]]
) -> None:
    waiting = [
        build(f"b{n}", owner=owner, priority=priority, pool=pool)
        for n, (owner, priority, pool) in enumerate(wishes)
    ]
    phones = [
        phone(f"p{n}", pool=pool, build_id="held" if is_held else None)
        for n, (pool, is_held) in enumerate(offers)
    ]
    decided = place(waiting, phones, {}, CARE, NOW_S)
    builds = [each.build_id for each in decided.placements]
    taken = [each.address for each in decided.placements]
    assert len(set(builds)) == len(builds)
    assert len(set(taken)) == len(taken)
    assert set(builds) | set(decided.reasons) == {each.id for each in waiting}
    for each in waiting:
        if each.id not in builds:
            idle = [
                p for p in phones if p.build_id is None and p.pool == each.pool and p.address not in taken
            ]
            assert not idle


@pytest.mark.parametrize(
    ("wish", "fits"),
    [
        ({}, True),
        ({"pool": "other"}, False),
        ({"phone": "p1", "pool": "other"}, True),
        ({"phone": "p2"}, False),
        ({"needs": {"jdk": 17}}, True),
        ({"needs": {"jdk": 25}}, False),
    ],
)
def test_a_build_stands_in_the_queue_of_a_phone_that_fits_it_however_the_phone_is(
    wish: dict[str, Any], fits: bool
) -> None:
    tired = {"asked_s": NOW_S, "heat_celsius": 60.0}
    for state, health in (("online", FELT), ("offline", FELT), ("online", tired)):
        known = phone("p1", state=state, health=health, contract={"jdk": "21.0.4"}, build_id="b9")
        assert could_take(build("b1", **wish), known) == fits


def test_a_build_with_secrets_goes_to_a_phone_of_the_host_that_has_them() -> None:
    wish = build("b1", spec={"secrets": ["password"], "host": "h2"})
    phones = [phone("p1", host="h1"), phone("p2", host="h2")]
    assert placed([wish], phones) == [("b1", "p2")]
    why = place([wish], phones[:1], {}, CARE, NOW_S).reasons["b1"]
    assert why == "phone p1: the build's secrets lie on host h2, and it is attached to h1"
    assert [could_take(wish, each) for each in phones] == [False, True]
