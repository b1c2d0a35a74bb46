import io

import pytest

from agent.progress import BuildAdvanced, BuildProblemSeen
from builder_bridge.build import BuildId
from orchestrator.cli.build_progress import MAX_ERRORS, TASK_EVERY_S, ProgressScreen
from orchestrator.client import FeedEvent

pytestmark = pytest.mark.anyio
BUILD = BuildId("b1")


class Clock:
    """Time that passes only when a test says so."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def error(number: int) -> BuildProblemSeen:
    return BuildProblemSeen(BUILD, "error", f"wrong {number}", "A.kt", number)


async def test_without_a_terminal_states_stand_in_lines_and_tasks_only_now_and_then() -> None:
    out, clock = io.StringIO(), Clock()
    screen = ProgressScreen(stream=out, clock=clock)
    await screen.show(BuildAdvanced(BUILD, "queued", detail="p1 is busy"))
    await screen.show(BuildAdvanced(BUILD, "running"))
    for number in range(100):
        clock.now_s += TASK_EVERY_S / 40
        await screen.show(BuildAdvanced(BUILD, "running", task=f":app:t{number}"))
    screen.end()
    assert out.getvalue().splitlines() == [
        "   0.0 s  queued (p1 is busy)",
        "   0.0 s  running",
        "  15.0 s  running :app:t39 (task 40)",
        "  30.0 s  running :app:t79 (task 80)",
    ]


async def test_errors_come_at_once_and_warnings_are_counted() -> None:
    out = io.StringIO()
    screen = ProgressScreen(stream=out)
    for number in range(MAX_ERRORS + 3):
        await screen.show(error(number))
        await screen.show(BuildProblemSeen(BUILD, "warning", "old", None, None))
    screen.end()
    shown = out.getvalue().splitlines()
    assert shown[:2] == ["error: A.kt wrong 0", "error: A.kt:1 wrong 1"]
    assert shown[MAX_ERRORS:] == ["3 further errors", "23 warnings; the log has them"]


async def test_verbose_shows_the_log_as_it_comes_and_says_nothing_twice() -> None:
    out, text = io.StringIO(), "> Task :app:x FAILED\ne: A.kt: (1, 1): wr"
    screen = ProgressScreen(is_verbose=True, stream=out, clock=Clock())
    await screen.show(BuildAdvanced(BUILD, "running"))
    screen.note(FeedEvent("log", {"text": text}, "9"))
    await screen.show(BuildAdvanced(BUILD, "running", task=":app:x"))
    await screen.show(error(1))
    await screen.show(BuildAdvanced(BUILD, "collecting"))
    screen.note(FeedEvent("log", {"text": "ong"}, "12"))
    screen.note(FeedEvent("attempt", {"attempt": 2}, ""))
    screen.end()
    assert out.getvalue() == f"   0.0 s  running\n{text}ong\nthe run was lost; attempt 2 begins\n"


async def test_quiet_says_nothing() -> None:
    out = io.StringIO()
    screen = ProgressScreen(is_quiet=True, is_verbose=True, stream=out)
    screen.note(FeedEvent("log", {"text": "x\n"}, "2"))
    screen.note(FeedEvent("attempt", {"attempt": 2}, ""))
    await screen.show(BuildAdvanced(BUILD, "running"))
    await screen.show(error(1))
    screen.end()
    assert out.getvalue() == ""


async def test_on_a_terminal_one_line_is_redrawn_and_gone_at_the_end() -> None:
    out = Terminal()
    screen = ProgressScreen(stream=out, clock=Clock())
    await screen.show(BuildAdvanced(BUILD, "running", task=":app:x"))
    screen.note(FeedEvent("attempt", {"attempt": 2}, ""))
    await screen.show(BuildAdvanced(BUILD, "running", task=":app:y"))
    screen.end()
    drawn = out.getvalue()
    assert drawn.count("\n") == 1
    assert drawn.endswith(":app:y\r\x1b[K")
