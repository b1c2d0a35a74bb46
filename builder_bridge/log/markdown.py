"""A digest as Markdown, for the page of a CI job or a pull request."""

import re

from builder_bridge.log.problem import Outcome
from builder_bridge.log.verdict import Digest, RootCause

MAX_CAUSES = 20
_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~])")
_WORDS = {
    Outcome.SUCCESS: "Build succeeded",
    Outcome.FAILED: "Build failed",
    Outcome.UNKNOWN: "Build has no known end",
}


def to_markdown(digest: Digest) -> str:
    """Write the digest as a heading, a table of causes with their sources, advice and changes."""
    facts = digest.facts
    lines = [
        f"### {_WORDS[digest.outcome]}" + (f" · {_escape(facts.build_id)}" if facts.build_id else ""),
        "",
    ]
    lines += [f"- {name}: {value}" for name, value in _facts(digest) if value]
    if digest.causes:
        lines += ["", "| # | Place | Problem | Followers |", "| --- | --- | --- | --- |"]
        lines += [_row(number, cause) for number, cause in enumerate(digest.causes[:MAX_CAUSES], 1)]
        left_out = len(digest.causes) - MAX_CAUSES
        if left_out > 0:
            lines.append(f"\n{left_out} more causes are in the log.")
        for number, cause in enumerate(digest.causes[:MAX_CAUSES], 1):
            lines += _source(number, cause)
    return "\n".join(lines) + "\n"


def _facts(digest: Digest) -> list[tuple[str, str]]:
    facts = digest.facts
    duration = f"{facts.duration_s:.0f} s" if facts.duration_s is not None else digest.duration_text or ""
    changes = digest.changes
    since = (
        f"{changes.causes_before} → {changes.causes_after} causes, {changes.solved} solved, {changes.new} new"
        if changes
        else ""
    )
    return [
        ("Failed tasks", ", ".join(f"`{task}`" for task in digest.failed_tasks)),
        ("Kind", f"{digest.kind}" if digest.kind else ""),
        ("Fault", f"{digest.fault}".replace("_", " ") if digest.fault else ""),
        ("Duration", duration),
        ("Phone", _escape(facts.phone) if facts.phone else ""),
        ("Errors and warnings", f"{digest.error_count} and {digest.warning_count}"),
        ("Since the last build", since),
        *(("Advice", _escape(advice)) for advice in digest.advice),
    ]


def _row(number: int, cause: RootCause) -> str:
    place = f"`{_code(cause.place)}`" if cause.place else str(cause.problem.tool)
    return f"| {number} | {place} | {_escape(cause.problem.gist)} | {len(cause.followers)} |"


def _source(number: int, cause: RootCause) -> list[str]:
    if not cause.source:
        return []
    shown = [f"{line:>5} | {text}" for line, text in cause.source]
    fence = "`" * (3 + max((len(run) for run in re.findall(r"`+", "\n".join(shown))), default=0))
    return ["", f"{number}. `{_code(cause.place or '')}`", "", fence, *shown, fence]


def _escape(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text).replace("\n", " ")


def _code(text: str) -> str:
    return text.replace("`", "'").replace("|", "\\|").replace("\n", " ")
