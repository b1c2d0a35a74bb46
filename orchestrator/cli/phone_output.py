"""What all commands of `pocketbuild phone` share: running to the end, and printing what a phone told."""

import json
import logging
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

import anyio
import click
import structlog

from builder_bridge.adb.announcements import to_printable
from builder_bridge.errors import BridgeError
from orchestrator.cli.terminal import UNREACHABLE

T = TypeVar("T")
LINE_CHARS = 2000

as_json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document and nothing else."
)


def say(sentence: str) -> None:
    """Tell a person something, beside the result on standard output."""
    click.echo(plain(sentence), err=True)


def show(found: Mapping[str, object], as_json: bool) -> None:
    """Print what was found, one line for each fact or as one document."""
    if as_json:
        click.echo(json.dumps(found, indent=1))
        return
    for name, value in found.items():
        text = ", ".join(map(str, value)) if isinstance(value, list) else value
        click.echo(plain(f"{name.replace('_', ' '):20} {text if value is not None else '-'}"))


def plain(text: str) -> str:
    """Take out what a phone could do to a terminal by its name, model or serial number."""
    return to_printable(text, LINE_CHARS)


def run(work: Callable[[], Awaitable[T]], as_json: bool) -> T:
    """Run to the end; a fault ends the command with its message and the next step, not a traceback."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    try:
        return anyio.run(work)
    except BridgeError as fault:
        if as_json:
            error = {"code": fault.code, "message": str(fault), "hint": fault.hint, "serial": fault.serial}
            click.echo(json.dumps({"error": error}, indent=1))
        else:
            click.echo("\n".join(map(plain, [*str(fault).splitlines(), fault.hint])), err=True)
        sys.exit(UNREACHABLE)
