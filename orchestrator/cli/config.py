"""`pocketbuild config`: the effective settings, each with where it came from."""

import json
import re
from pathlib import Path
from typing import Any

import click
from pydantic import BaseModel, SecretStr

from orchestrator.cli import terminal
from orchestrator.settings import load_settings

MASK = "********"
_SECRET_NAME = re.compile(r"(key|token|secret|password|authorization|cookie)$", re.IGNORECASE)
_SECRET_TABLES = frozenset({"env", "environment", "headers"})


@click.command()
@click.option("--json", "is_json", is_flag=True, help="As one JSON object.")
@click.option("--config", "config_file", type=click.Path(path_type=Path), help="Another settings file.")
def config(config_file: Path | None, is_json: bool) -> None:
    """Print the effective settings with their source; secrets are masked."""
    with terminal.told_faults():
        loaded = load_settings(config_file)
    entries = [(name, value, loaded.sources.get(name, "default")) for name, value in flat(loaded.settings)]
    if is_json:
        click.echo(json.dumps({name: {"value": value, "source": source} for name, value, source in entries}))
        return
    width = max(len(name) for name, _, _ in entries)
    for name, value, source in entries:
        click.echo(f"{name:<{width}}  {json.dumps(value)}  ({source})")


def flat(model: BaseModel, prefix: str = "") -> list[tuple[str, Any]]:
    """Give each setting by its dotted name, with secrets masked."""
    found: list[tuple[str, Any]] = []
    for name in type(model).model_fields:
        value = getattr(model, name)
        if isinstance(value, BaseModel):
            found += flat(value, f"{prefix}{name}.")
        else:
            found.append((prefix + name, _shown(value)))
    return found


def _shown_in_table(name: str, value: Any) -> Any:
    """Mask what a free table holds under a name that secrets have, and all of headers and environments."""
    if name.lower() in _SECRET_TABLES and isinstance(value, dict):
        return dict.fromkeys(value, MASK)
    if isinstance(value, str) and _SECRET_NAME.search(name):
        return MASK
    return _shown(value)


def _shown(value: Any) -> Any:
    match value:
        case SecretStr():
            return MASK
        case Path():
            return str(value)
        case BaseModel():
            return dict(flat(value))
        case tuple() | list():
            return [_shown(each) for each in value]
        case dict():
            return {name: _shown_in_table(str(name), each) for name, each in value.items()}
        case _:
            return value
