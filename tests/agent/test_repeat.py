"""Calls that repeat themselves, and builds that get nowhere."""

from agent.message import JsonObject, ToolCall
from agent.repeat import BuildTrend, RepeatGuard, causes_of
from builder_bridge.log.digest import digest_to_json, make_digest
from builder_bridge.log.reader import LogReader

READ = ToolCall("c1", "read_file", {"path": "a", "first_line": 1})
SAME_OTHER_ORDER = ToolCall("c2", "read_file", {"first_line": 1, "path": "a"})


def test_the_same_call_with_the_same_result_is_noticed_then_refused() -> None:
    guard = RepeatGuard()
    assert guard.refusal(READ) is None
    assert guard.note(READ, "text") == "text"
    assert guard.refusal(SAME_OTHER_ORDER) is None
    assert "nothing has changed since" in guard.note(SAME_OTHER_ORDER, "text")
    assert "2 times" in (guard.refusal(READ) or "")
    assert guard.refused_in_a_row == 1


def test_another_result_or_a_change_of_the_workspace_makes_a_call_worth_repeating() -> None:
    guard = RepeatGuard()
    guard.note(READ, "one")
    assert guard.note(READ, "two") == "two"
    guard.note(READ, "two")
    guard.changed()
    assert guard.refusal(READ) is None
    assert guard.note(READ, "two") == "two"


def digest(*messages: str, first_line: int = 7) -> JsonObject:
    """Give the digest of a log, as builds bring it."""
    reader = LogReader()
    said = [
        f"e: file:///w/A.kt:{line}:1 {message}" for line, message in enumerate(messages, start=first_line)
    ]
    reader.feed("\n".join(["> Task :app:compileDebugKotlin FAILED", *said, ""]).encode())
    return digest_to_json(make_digest(reader.close()))


def test_causes_are_those_of_a_digest_wherever_their_lines_have_moved() -> None:
    assert causes_of(digest("x", "y")) == causes_of(digest("y", "x", first_line=90))
    assert len(causes_of(digest("x", "y"))) == 2
    assert causes_of(digest("x")) != causes_of(digest("y"))


def test_where_no_cause_was_made_out_the_failed_tasks_stand_for_it() -> None:
    unknown: JsonObject = {"causes": [], "kind": "compile", "failed_tasks": [":a", ":b"]}
    assert causes_of(unknown) == {"compile|:a", "compile|:b"}
    assert causes_of({}) == frozenset()


def test_failed_builds_with_the_same_causes_are_noticed_then_stop_the_run() -> None:
    trend = BuildTrend(noticed_after=2, stopped_after=3)
    trend.note("f1", False, digest("x"))
    assert trend.notice is None
    trend.note("f2", False, digest("x"))
    assert "2 builds in a row" in (trend.notice or "")
    trend.note("f3", False, digest("x"))
    assert trend.is_stuck


def test_another_cause_a_green_build_or_the_same_state_is_no_standstill() -> None:
    trend = BuildTrend(noticed_after=2, stopped_after=3)
    for fingerprint, is_green, found in [
        ("1", False, "x"),
        ("1", False, "x"),
        ("2", False, "y"),
        ("3", True, ""),
    ]:
        trend.note(fingerprint, is_green, digest(found))
        assert trend.notice is None


def test_a_trend_survives_being_written_down() -> None:
    trend = BuildTrend()
    trend.note("f1", False, digest("x", "y"))
    assert BuildTrend.from_memory(trend.to_memory()) == trend
