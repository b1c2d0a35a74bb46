"""Texts for the model, from the template files in `prompts/`."""

from functools import cache
from importlib.resources import files
from pathlib import Path
from string import Template

_MAX_INSTRUCTION_CHARS = 16_000
INSTRUCTIONS_FILE = "AGENTS.md"


@cache
def _template(name: str) -> Template:
    return Template((files("agent") / "prompts" / f"{name}.md").read_text(encoding="utf-8"))


def fill(name: str, **values: str) -> str:
    """Give the text of a template with its places filled."""
    return _template(name).substitute(values).strip()


def system_prompt(workspace: Path, *, verifies: bool) -> str:
    """Give the system prompt of a run: the same for all its turns, so that providers can cache it."""
    text = _instructions(workspace / INSTRUCTIONS_FILE)
    if len(text) > _MAX_INSTRUCTION_CHARS:
        text = text[:_MAX_INSTRUCTION_CHARS] + f"\n[… cut; read_file shows the rest of {INSTRUCTIONS_FILE}]"
    return fill(
        "system",
        verify=fill("verify") if verifies else "",
        instructions=fill("instructions", text=text) if text.strip() else "",
    )


def _instructions(file: Path) -> str:
    """Give the text of a workspace's own instructions, of a long one no more than shows that it is."""
    if not file.is_file() or file.is_symlink():
        return ""
    with file.open(encoding="utf-8", errors="replace") as opened:
        return opened.read(_MAX_INSTRUCTION_CHARS + 1)
