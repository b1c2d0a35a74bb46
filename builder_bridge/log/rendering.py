"""A digest as text within a budget of characters, and as JSON."""

from typing import Any

from builder_bridge.log.problem import Outcome, Problem
from builder_bridge.log.root_causes import headline
from builder_bridge.log.verdict import RUNNING, Changes, Digest, PreviousBuild, RootCause, TaskRun

DEFAULT_BUDGET_CHARS = 2000
MAX_LISTED_CAUSES = 200
"""So many causes get a line each whatever the budget; a log with more has one cause in truth."""

_MAX_GIST_CHARS = 300
_CLIPPED_GIST_CHARS = 100


def render_text(digest: Digest, budget_chars: int = DEFAULT_BUDGET_CHARS) -> str:
    """Write the digest for a prompt or a terminal.

    The head and each root cause's first line always stand, even if they alone exceed the budget.
    Source lines, further message lines, changes and advice follow as far as they fit, and the
    last line says what was left out and how to read it.
    """
    shown = digest.causes[:MAX_LISTED_CAUSES]
    firsts = [_first_line(number, cause, _MAX_GIST_CHARS) for number, cause in enumerate(shown, 1)]
    head, tail = _head(digest), _tail(digest)
    if sum(map(len, (head, *firsts, *tail))) > budget_chars:
        firsts = [_first_line(number, cause, _CLIPPED_GIST_CHARS) for number, cause in enumerate(shown, 1)]
    left = budget_chars - len(head) - sum(len(line) + 1 for line in firsts) - _FOOT_RESERVE_CHARS
    kept_tail: list[str] = []
    for line in tail:
        if len(line) + 1 <= left:
            kept_tail.append(line)
            left -= len(line) + 1
    body: list[str] = []
    left_out = len(tail) - len(kept_tail)
    for first, cause in zip(firsts, shown, strict=True):
        body.append(first)
        for line in _details(cause):
            if len(line) + 1 <= left:
                body.append(line)
                left -= len(line) + 1
            else:
                left_out += 1
    foot = _foot(digest, left_out, len(digest.causes) - len(shown))
    return "\n".join([head, *body, *kept_tail, *foot])


_FOOT_RESERVE_CHARS = 160


def _head(digest: Digest) -> str:
    facts = digest.facts
    words = {Outcome.SUCCESS: "SUCCEEDED", Outcome.FAILED: "FAILED", Outcome.UNKNOWN: "has no known end"}
    duration = f"{facts.duration_s:.0f} s" if facts.duration_s is not None else digest.duration_text
    first = " ".join(
        part
        for part in (
            "build",
            facts.build_id,
            words[digest.outcome],
            f"in {duration}" if duration else None,
            f"on {facts.phone}" if facts.phone else None,
        )
        if part
    )
    parts = [first, *digest.failed_tasks[:3]]
    if len(digest.failed_tasks) > 3:
        parts.append(f"{len(digest.failed_tasks) - 3} more tasks")
    if digest.kind is not None:
        parts.append(str(digest.kind))
    if digest.fault is not None:
        parts.append(f"fault: {digest.fault}")
    parts.append(_counts(digest))
    return " · ".join(part for part in parts if part)


def _counts(digest: Digest) -> str:
    errors = _plural(digest.error_count, "error")
    warnings = _plural(digest.warning_count, "warning")
    if digest.outcome is Outcome.SUCCESS:
        return warnings if digest.warning_count else ""
    files = {
        problem.file
        for cause in digest.causes
        for problem in (cause.problem, *cause.followers)
        if problem.file
    }
    told = f"{_plural(len(digest.causes), 'cause')}, {errors}"
    told += f" in {_plural(len(files), 'file')}" if files else ""
    return f"{told}, {warnings}" if digest.warning_count else told


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _clip(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _first_line(number: int, cause: RootCause, gist_chars: int) -> str:
    problem = cause.problem
    place = cause.place
    parts = [str(number), place or f"[{problem.tool}]", _clip(headline(problem), gist_chars)]
    if cause.followers:
        verb = "follows" if len(cause.followers) == 1 else "follow"
        parts.append(f"({len(cause.followers)} more {verb} from it)")
    return "  ".join(parts)


def _details(cause: RootCause) -> list[str]:
    details = []
    width = len(str(cause.source[-1][0])) if cause.source else 0
    for number, text in cause.source:
        mark = ">" if number == cause.problem.line else " "
        details.append(f"      {mark} {number:>{width}} | {text}".rstrip())
    further = cause.problem.message.split("\n")[1:]
    if cause.source:
        further = [line for line in further if _says_more(line)]
    details += [f"      {line.rstrip()}" for line in further if line.strip()][:12]
    return details


def _says_more(line: str) -> bool:
    """Whether a line is more than an echo of the source or its caret."""
    return bool(line.strip(" ^~|\t")) and line.lstrip().partition(":")[1] == ":"


def _tail(digest: Digest) -> list[str]:
    lines = [f"advice: {advice}" for advice in digest.advice]
    changes = _since(digest.changes) if digest.changes else ""
    spent = f"spent {digest.facts.spent}" if digest.facts.spent else ""
    since = " · ".join(part for part in (changes, spent) if part)
    if since:
        lines.append(since)
    if digest.outcome is not Outcome.SUCCESS:
        check = _check(digest.cheaper_check) if digest.cheaper_check else ""
        log = f"full log: {_read(digest, 'problem=1')}" if digest.facts.build_id else ""
        lines += [" · ".join(part for part in (check, log) if part)] if check or log else []
    return lines


def _since(changes: Changes) -> str:
    name = f"build {changes.previous.build_id}" if changes.previous.build_id else "the last build"
    text = f"since {name}: {_plural(changes.causes_before, 'cause')} → {changes.causes_after}"
    details = [f"{changes.solved} solved"] if changes.solved else []
    details += [f"{changes.new} new"] if changes.new else []
    if details:
        text += f" ({', '.join(details)})"
    if changes.files:
        names = [file.rpartition("/")[2] for file in changes.files[:5]]
        more = f" and {len(changes.files) - 5} more" if len(changes.files) > 5 else ""
        text += f"; changed {', '.join(names)}{more}"
    return text


def _check(task: TaskRun) -> str:
    took = f" took {task.duration_s:.0f} s" if task.duration_s is not None else ""
    took = " (it was running)" if task.outcome == RUNNING else took
    return f'cheaper check: task="{task.path}"{took}'


def _read(digest: Digest, what: str) -> str:
    """Say how to read on: with the agent's tool where there is a build, else with a larger budget."""
    if digest.facts.build_id:
        return f'read_build_log(build="{digest.facts.build_id}", {what})'
    return "a larger budget or the JSON form"


def _foot(digest: Digest, lines_left_out: int, causes_left_out: int) -> list[str]:
    notes = []
    if causes_left_out:
        notes.append(f"{causes_left_out} more causes")
    if lines_left_out:
        notes.append(_plural(lines_left_out, "line") + " of detail")
    if digest.problems_left_out:
        notes.append(f"{digest.problems_left_out} more problems")
    if not notes:
        return []
    return [f"left out: {', '.join(notes)}; read them with {_read(digest, 'problem=N')}"]


def problem_to_json(problem: Problem) -> dict[str, Any]:
    """Give a problem as a JSON object."""
    return {
        "severity": str(problem.severity),
        "tool": str(problem.tool),
        "file": problem.file,
        "line": problem.line,
        "column": problem.column,
        "message": problem.message,
        "log_line": problem.log_line,
        "task": problem.task,
    }


def digest_to_json(digest: Digest) -> dict[str, Any]:
    """Give the whole digest as a JSON object; nothing is left out of it."""
    changes = digest.changes
    return {
        "build_id": digest.facts.build_id,
        "phone": digest.facts.phone,
        "duration_s": digest.facts.duration_s,
        "outcome": str(digest.outcome),
        "kind": str(digest.kind) if digest.kind else None,
        "fault": str(digest.fault) if digest.fault else None,
        "failed_tasks": list(digest.failed_tasks),
        "error_count": digest.error_count,
        "warning_count": digest.warning_count,
        "problems_left_out": digest.problems_left_out,
        "causes": [_cause_to_json(cause) for cause in digest.causes],
        "advice": list(digest.advice),
        "changes": changes
        and {
            "previous_build_id": changes.previous.build_id,
            "causes_before": changes.causes_before,
            "causes_after": changes.causes_after,
            "solved": changes.solved,
            "new": changes.new,
            "files": list(changes.files),
        },
        "cheaper_check": digest.cheaper_check
        and {"task": digest.cheaper_check.path, "duration_s": digest.cheaper_check.duration_s},
    }


def _cause_to_json(cause: RootCause) -> dict[str, Any]:
    return {
        **problem_to_json(cause.problem),
        "path": cause.path,
        "identity": cause.identity,
        "source": [{"line": number, "text": text} for number, text in cause.source],
        "followers": [problem_to_json(follower) for follower in cause.followers],
    }


def previous_from_json(digest: dict[str, Any]) -> PreviousBuild:
    """Read what is compared out of an earlier build's digest in JSON."""
    identities = (cause.get("identity") for cause in digest.get("causes", []))
    return PreviousBuild(digest.get("build_id"), tuple(str(name) for name in identities if name))
