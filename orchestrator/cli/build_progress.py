"""What a person or a CI job sees of a build at work: states, tasks at a coarse grain, errors at once.

On a terminal one line is redrawn. Elsewhere lines follow each other, and a task is named only now
and then, so that the log of a CI job holds what matters. With `verbose` Gradle's own log is shown, and
nothing of ours stands inside of it.
"""

import shutil
import sys
import time
from collections.abc import Callable
from typing import TextIO

from agent.progress import BuildAdvanced, BuildProblemSeen, BuildProgress
from orchestrator.cli.terminal import forecast, seconds
from orchestrator.client import FeedEvent

TASK_EVERY_S = 15.0
"""How often a task at work is named where there is no terminal: often enough to see that it lives."""

MAX_ERRORS = 20
"""How many errors are shown as they come; the digest at the end has what matters of all."""


class ProgressScreen:
    """Shows one build until `end`; on standard error, for standard output is the result's."""

    def __init__(
        self,
        *,
        is_quiet: bool = False,
        is_verbose: bool = False,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream or sys.stderr
        self._is_quiet = is_quiet
        self._is_verbose = is_verbose and not is_quiet
        self._is_live = self._stream.isatty() and not self._is_verbose
        self._clock = clock
        self._began_s = self._named_s = clock()
        self._drawn = ""
        self._state = ""
        self._has_log = False
        self._is_mid_line = False
        self._tasks = 0
        self._errors = 0
        self._warnings = 0

    def note(self, event: FeedEvent) -> None:
        """Say that a build is begun again; with `verbose` show what its log says."""
        if event.name == "attempt":
            self._line(f"the run was lost; attempt {event.data['attempt']} begins")
        elif event.name == "log" and self._is_verbose and event.data["text"]:
            self._has_log = True
            self._is_mid_line = not event.data["text"].endswith("\n")
            self._stream.write(event.data["text"])
            self._stream.flush()

    async def show(self, progress: BuildProgress) -> None:
        """Show one step of a build."""
        match progress:
            case BuildAdvanced(_, state, None, _, detail):
                self._state = state
                self._draw(f"{state}{f' ({detail})' if detail else ''}")
            case BuildAdvanced(_, state, task):
                self._see_task(state, f"{forecast(progress)} {task}".lstrip())
            case BuildProblemSeen(_, severity, message, file, line):
                self._see_problem(severity, ":".join(str(part) for part in (file, line) if part), message)
            case _:
                pass

    def end(self) -> None:
        """Leave no half-drawn line behind, and say what was counted instead of shown."""
        self._clear()
        if self._is_verbose:
            return
        if self._errors > MAX_ERRORS:
            self._line(f"{self._errors - MAX_ERRORS} further errors")
        if self._warnings:
            self._line(f"{self._warnings} warning{'s' if self._warnings > 1 else ''}; the log has them")

    def _see_task(self, state: str, task: str) -> None:
        self._tasks += 1
        is_news, self._state = state != self._state, state
        if self._is_live:
            self._draw(f"{state} {task}")
        elif is_news:
            self._draw(state)
        elif self._is_verbose:
            return
        elif self._clock() - self._named_s >= TASK_EVERY_S:
            self._draw(f"{state} {task} (task {self._tasks})")

    def _see_problem(self, severity: str, place: str, message: str) -> None:
        if severity != "error":
            self._warnings += 1
            return
        self._errors += 1
        if not self._is_verbose and self._errors <= MAX_ERRORS:
            self._line(f"{severity}: {place} {message}".replace("  ", " "))

    def _draw(self, text: str) -> None:
        if self._is_quiet or text == self._drawn or self._has_log:
            return
        self._drawn = text
        self._named_s = self._clock()
        spent = f"{seconds(self._named_s - self._began_s):>8}  {text}"
        if self._is_live:
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(f"\r\x1b[K{spent[:width]}")
        else:
            self._stream.write(f"{spent}\n")
        self._stream.flush()

    def _line(self, text: str) -> None:
        if not self._is_quiet:
            self._clear()
            self._stream.write(f"{text}\n")
            self._stream.flush()

    def _clear(self) -> None:
        if self._is_mid_line:
            self._stream.write("\n")
            self._is_mid_line = False
        if self._is_live and self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
