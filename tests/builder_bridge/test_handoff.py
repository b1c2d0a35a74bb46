"""What the phone says is checked, and becomes the bridge's own values or a named fault."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder_bridge.build import BuildState, RunId, RunIdentity
from builder_bridge.errors import (
    BridgeError,
    PhoneBusy,
    ProtocolFault,
    RunConflict,
    StorageFull,
    TransferFault,
    UnknownRun,
)
from builder_bridge.handoff import (
    OpenDocument,
    ResultDocument,
    StateLines,
    StatusDocument,
    judge,
    parse,
)
from builder_bridge.outcome import describe_artifact, stage_seconds, to_result

STATUS = {
    "pb": 1, "run": "r-1", "digest": "d" * 64, "state": {"state": "running"}, "pid": 77, "start_ticks": 1234,
    "boot_id": "b-1", "boot_now": "b-1", "alive": True, "beat": "3 1796043424 900", "log_size": "3000000000",
}  # fmt: skip
RESULT = {
    "pb": 1, "run": "r-1", "state": "done", "exit_code": 0, "cause": None, "log_size": "5",
    "log_sha256": "a" * 64, "facts": {"route": "run_as"},
    "artifacts": [{"index": 0, "path": "app/build/outputs/apk/a.apk", "size": "4294967297",
                   "sha256": "b" * 64}],
    "times": ["unpacking 1796040000.000000", "running 1796040001.500000", "done 1796040061.600000"],
}  # fmt: skip


def line(document: object) -> bytes:
    return json.dumps(document).encode() + b"\n"


def test_numbers_past_31_bits_arrive_as_text_and_are_numbers_here() -> None:
    status = judge(parse(line(STATUS), StatusDocument))
    assert status.log_size_bytes == 3_000_000_000
    assert status.identity == RunIdentity(77, 1234, "b-1")


@pytest.mark.parametrize(
    ("change", "state", "has_rebooted"),
    [
        ({}, BuildState.RUNNING, False),
        ({"alive": False}, BuildState.LOST, False),
        ({"alive": False, "boot_now": "b-2"}, BuildState.LOST, True),
        ({"alive": False, "state": {"state": "done"}}, BuildState.DONE, False),
        ({"alive": False, "pid": 0, "state": {"state": "received"}}, BuildState.RECEIVED, False),
    ],
)
def test_a_run_without_a_living_process_and_without_a_verdict_is_lost(
    change: dict[str, object], state: BuildState, has_rebooted: bool
) -> None:
    status = judge(parse(line(STATUS | change), StatusDocument))
    assert (status.state, status.has_rebooted) == (state, has_rebooted)


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("unknown_run", UnknownRun),
        ("run_conflict", RunConflict),
        ("storage_full", StorageFull),
        ("transfer_digest", TransferFault),
        ("busy", PhoneBusy),
        ("something_new", ProtocolFault),
    ],
)
def test_the_phones_refusals_become_faults_of_their_kind(code: str, fault: type[BridgeError]) -> None:
    with pytest.raises(fault, match=code):
        parse(line({"pb": 1, "error": code, "detail": "because"}), StatusDocument)


def test_a_builder_that_is_busy_is_no_matter_of_cables_and_adb_servers() -> None:
    with pytest.raises(PhoneBusy) as raised:
        parse(line({"pb": 1, "error": "busy", "detail": "run r-1 is building"}), StatusDocument)
    assert "has ended" in raised.value.hint
    assert "adb" not in raised.value.hint


@pytest.mark.parametrize(
    "answer", [b"", b"run-as: hello\n", b"[]\n", b'{"pb":2}\n', b'{"run":"x"}\n', b"{" * 5000, b'"pb"']
)
def test_what_is_no_line_of_the_protocol_is_a_protocol_fault(answer: bytes) -> None:
    with pytest.raises(ProtocolFault):
        parse(answer, StatusDocument)


@given(st.binary(max_size=300))
def test_no_answer_whatever_gets_past_as_anything_but_a_protocol_fault(answer: bytes) -> None:
    with pytest.raises(ProtocolFault):
        parse(answer, OpenDocument)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(sorted(RESULT)), JSON)
def test_a_result_with_any_odd_field_is_a_result_or_a_named_fault(field: str, value: object) -> None:
    try:
        result = to_result(parse(line(RESULT | {field: value}), ResultDocument), RunId("r-1"), {})
    except BridgeError:
        return
    assert result.run_id == "r-1"


def test_a_result_tells_stages_artifacts_and_facts() -> None:
    result = to_result(parse(line(RESULT), ResultDocument), RunId("r-1"), {"host": "h"})
    assert result.is_success
    assert result.stage_s == {"unpacking": 1.5, "running": 60.1}
    assert result.artifacts[0].size_bytes == (1 << 32) + 1
    assert result.facts == {"route": "run_as", "host": "h"}


@pytest.mark.parametrize("path", ["/etc/passwd", "../x.apk", "a/../../x.apk", "a//x.apk", "./x.apk"])
def test_an_artifact_that_names_a_path_outside_is_refused(path: str) -> None:
    document = RESULT | {"artifacts": [RESULT["artifacts"][0] | {"path": path}]}  # type: ignore[index]
    with pytest.raises(ProtocolFault, match="outside"):
        to_result(parse(line(document), ResultDocument), RunId("r-1"), {})


def test_the_result_of_another_run_is_refused() -> None:
    with pytest.raises(ProtocolFault, match="r-1"):
        to_result(parse(line(RESULT), ResultDocument), RunId("r-2"), {})


@pytest.mark.parametrize(
    ("path", "kind", "variant"),
    [
        ("app/build/outputs/apk/app-debug.apk", "apk", "debug"),
        ("app/build/outputs/apk/app-free-release-unsigned.apk", "apk", "freeRelease"),
        ("app/build/outputs/apk/debug/app-debug.apk", "apk", "debug"),
        ("app/build/outputs/apk/free/release/app-free-release.apk", "apk", "freeRelease"),
        ("app/build/outputs/bundle/freeRelease/app-free-release.aab", "aab", "freeRelease"),
        ("lib/build/outputs/aar/lib-release.aar", "aar", "release"),
        ("app/build/outputs/mapping/release/mapping.txt", "mapping", "release"),
        ("build/outputs/apk/odd.apk", "apk", None),
    ],
)
def test_kind_and_variant_come_from_where_the_plugin_puts_a_file(
    path: str, kind: str, variant: str | None
) -> None:
    assert describe_artifact(path) == (kind, variant)


@given(st.lists(st.integers(1, 20), max_size=6))
def test_states_are_the_same_however_the_stream_is_cut(cuts: list[int]) -> None:
    data = b'{"state":"running"}\nnoise\n{"state":"done","log_size":"12"}\n{"state":"odd"}\n'
    reader, states, rest = StateLines(), [], data
    for cut in cuts:
        states += reader.feed(rest[:cut])
        rest = rest[cut:]
    states += reader.feed(rest)
    assert [(state.state, state.log_size) for state in states] == [("running", None), ("done", 12)]


@given(st.lists(st.text(max_size=60), max_size=5))
def test_odd_times_are_passed_over(times: list[str]) -> None:
    assert all(seconds >= 0 for seconds in stage_seconds(times).values())
