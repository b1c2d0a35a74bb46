"""What a person sees of an agent at work: its words as they come, its calls, its builds, what it spends."""

import json
import sys
from dataclasses import asdict, is_dataclass
from typing import Any, TextIO

import click

from agent.approval import Question, Reply
from agent.budget import Spent
from agent.progress import (
    BuildAdvanced,
    BuildEnded,
    BuildProblemSeen,
    BuildSubmitted,
    CallForming,
    Compacted,
    Progress,
    RetryScheduled,
    RunStarted,
    StreamDiagnosed,
    TextStreamed,
    ToolEnded,
    ToolStarted,
    TurnSpent,
)
from agent.runner import RunResult
from orchestrator.cli import terminal
from orchestrator.cli.terminal import forecast, plain, seconds

MAX_RESULT_CHARS = 300
_YES, _ALL, _NO = {"y", "yes"}, {"a", "all"}, {"", "n", "no"}


class Screen:
    """Shows progress as text for people, or as one JSON object a line for programs."""

    def __init__(self, *, is_json: bool, stream: TextIO | None = None) -> None:
        self._is_json = is_json
        self._out = stream or sys.stdout
        self._is_live = not is_json and self._out.isatty()
        self._is_mid_line = False
        self._status = ""
        self.is_asking = False

    async def show(self, progress: Progress) -> None:
        """Show one step."""
        if self._is_json:
            self._write_json(type(progress).__name__, progress)
            return
        match progress:
            case RunStarted():
                self._begin(progress)
            case TextStreamed(text):
                self._stream(text)
            case ToolStarted() | ToolEnded() | CallForming():
                self._show_call(progress)
            case BuildSubmitted() | BuildAdvanced() | BuildProblemSeen() | BuildEnded():
                self._show_build(progress)
            case RetryScheduled(attempt, wait_s, reason):
                self._line(
                    f"  the provider failed ({reason}); try {attempt + 1} in {seconds(wait_s)}", "yellow"
                )
            case StreamDiagnosed(diagnostic):
                self._line(f"  odd response: {diagnostic.code} ({diagnostic.detail})", "yellow")
            case Compacted(results, turns, before, after):
                self._line(
                    f"  folded {results} results, {turns} turns: {before} → {after} tokens", "bright_black"
                )
            case TurnSpent(turn, spent, _):
                self._line(f"  turn {turn}: {spent_text(spent)}", "bright_black")
            case _:
                pass

    async def ask(self, question: Question) -> Reply:
        """Ask the person whether a call may run."""
        self._clear()
        terminal.say(plain(f"{question.call.name}: {question.summary}"), fg="yellow")
        for name, value in question.call.arguments.items():
            shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            terminal.say(plain(_indented(f"{name}: {shown}")))
        self.is_asking = True
        try:
            answer = await terminal.ask("run it? [y]es, [n]o, [a]ll of this tool, or no and why [n]: ")
        finally:
            self.is_asking = False
        word = answer.strip().lower()
        if word in _YES | _ALL:
            return Reply(is_allowed=True, for_all=word in _ALL)
        return Reply(is_allowed=False, reason="" if word in _NO else answer.strip())

    def end(self, result: RunResult) -> None:
        """Show how the run ended."""
        if self._is_json:
            self._write_json("RunResult", result)
            return
        self._line(f"{result.reason.value}: {result.detail}", "green" if result.reason.is_success else "red")
        self._line(f"  {spent_text(result.spent)} · run {result.run_id}", "bright_black")

    def _begin(self, started: RunStarted) -> None:
        who = "a recorded script, no model" if started.is_scripted else f"{started.provider} {started.model}"
        again = "goes on" if started.is_resumed else "begins"
        self._line(f"run {started.run_id} {again}; answers come from {who}", "bright_black")

    def _show_call(self, progress: ToolStarted | ToolEnded | CallForming) -> None:
        match progress:
            case CallForming(_, name, chars):
                self._draw(f"  {name or '…'} ({chars} characters)")
            case ToolStarted(call, summary):
                self._line(f"→ {call.name} {summary}".rstrip(), "cyan")
            case ToolEnded(call, result, spent_s):
                mark = "✗" if result.is_error else "✓"
                self._line(f"{mark} {call.name} in {seconds(spent_s)}", "red" if result.is_error else "cyan")
                if call.name == "build_gradle_project" or result.is_error:
                    self._line(_indented(result.content))

    def _show_build(self, progress: BuildSubmitted | BuildAdvanced | BuildProblemSeen | BuildEnded) -> None:
        match progress:
            case BuildSubmitted(build_id):
                self._line(f"  build {build_id} submitted", "bright_black")
            case BuildAdvanced(_, state, task, _, detail):
                words = (state, forecast(progress), task, detail)
                self._draw("  " + " ".join(word for word in words if word))
            case BuildProblemSeen(_, severity, message, file, line):
                place = ":".join(str(part) for part in (file, line) if part)
                self._line(f"  {severity}: {place} {message}", "red" if severity == "error" else "yellow")
            case BuildEnded(_, outcome, spent_s, is_from_earlier):
                how = "known from before" if is_from_earlier else f"in {seconds(spent_s)}"
                self._line(f"  build {outcome} ({how})", "green" if outcome == "green" else "red")

    def _stream(self, text: str) -> None:
        self._clear()
        self._out.write(plain(text))
        self._out.flush()
        self._is_mid_line = not text.endswith("\n")

    def _line(self, text: str, color: str | None = None) -> None:
        text = plain(text)
        self._clear()
        if self._is_mid_line:
            self._out.write("\n")
            self._is_mid_line = False
        self._out.write((click.style(text, fg=color) if self._is_live else text) + "\n")
        self._out.flush()

    def _draw(self, text: str) -> None:
        if self._is_live and text != self._status and not self._is_mid_line:
            self._out.write(f"\r\x1b[K{plain(text)[:110]}")
            self._out.flush()
            self._status = text

    def _clear(self) -> None:
        if self._status:
            self._out.write("\r\x1b[K")
            self._status = ""

    def _write_json(self, event: str, value: Any) -> None:
        body = asdict(value) if is_dataclass(value) and not isinstance(value, type) else {}
        self._out.write(json.dumps({"event": event, **body}, default=str) + "\n")
        self._out.flush()


def spent_text(spent: Spent) -> str:
    """Show the totals of a run in one line."""
    parts = [f"{spent.turns} turns", f"{spent.input_tokens} + {spent.output_tokens} tokens"]
    if spent.cached_input_tokens:
        parts.append(f"{spent.cached_input_tokens} cached")
    if spent.money:
        parts.append(f"${spent.money:.2f}")
    parts += [f"{spent.builds} builds", f"{seconds(spent.phone_s)} on phones", seconds(spent.wall_s)]
    return " · ".join(parts)


def _indented(text: str) -> str:
    cut = text if len(text) <= 20 * MAX_RESULT_CHARS else text[: 20 * MAX_RESULT_CHARS] + "…"
    return "\n".join(f"    {line}" for line in cut.splitlines())
