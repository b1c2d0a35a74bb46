"""`pocketbuild agent list`: the runs that are kept here."""

import json
from pathlib import Path
from typing import Any, get_args

import click

from orchestrator.agent_list import RUN_ID, KeptRun, RunFilter, RunList, State
from orchestrator.cli import terminal
from orchestrator.errors import NotFound
from orchestrator.settings import load_settings

ASSIGNMENT_CHARS = 80


@click.command("list")
@click.option("--state", type=click.Choice(get_args(State)), help="Only those that are so.")
@click.option("--reason", metavar="WORD", help="Only those that stopped so, such as green or budget.")
@click.option("--workspace", type=click.Path(path_type=Path), help="Only those on this folder.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="How many at most.")
@click.option("--before", metavar="ID", help="Only earlier ones than this.")
@click.option("--json", "is_json", is_flag=True, help="A JSON object a line, as the API gives it.")
@click.option("--config", type=click.Path(path_type=Path), help="Another settings file.")
def list_runs(limit: int, is_json: bool, config: Path | None, **given: Any) -> None:
    """List the runs that are kept here, newest first."""
    wanted = RunFilter(
        state=given["state"],
        reason=given["reason"],
        workspace=given["workspace"] and str(given["workspace"].resolve()),
        before=given["before"],
        limit=limit + 1,
    )
    with terminal.told_faults():
        settings = load_settings(config).settings
        if wanted.before is not None and not RUN_ID.fullmatch(wanted.before):
            raise NotFound(f"{wanted.before} is no id of a run", hint="See `pocketbuild agent list`.")
    found = RunList(settings.data_dir).page(wanted, {})
    for run, state in found[:limit]:
        click.echo(json.dumps(run.fields(state), ensure_ascii=False) if is_json else _line(run, state))
    if len(found) > limit:
        terminal.say(f"earlier ones: `pocketbuild agent list --before {found[limit - 1][0].id}`")


def _line(run: KeptRun, state: State) -> str:
    fields = run.fields(state)
    told = f"stopped: {run.reason}" if state == "stopped" else state
    assignment = " ".join((fields["assignment"] or "").split())[:ASSIGNMENT_CHARS]
    rest = (fields["model"], fields["workspace"], assignment)
    return "  ".join([run.id, f"{told:<20}", *(word or "-" for word in rest)])
