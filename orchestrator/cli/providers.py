"""`pocketbuild providers`: list the model providers that are known, and try one out."""

import json
import os
from pathlib import Path

import click

from agent.http import Line
from agent.keys import find_key
from agent.message import Dialect
from agent.providers.catalogue import KNOWN, Catalogue, Choice, choose, find
from agent.providers.provider import Provider
from agent.providers.settings import with_settings
from agent.record import Recorder
from agent.redact import Redactor
from agent.trial import Finding, try_out
from orchestrator.cli import terminal
from orchestrator.settings import load_settings


@click.group(invoke_without_command=True)
@click.option("--json", "is_json", is_flag=True, help="One JSON object a provider.")
@click.option("--config", type=click.Path(path_type=Path), help="Another settings file.")
@click.pass_context
def providers(context: click.Context, is_json: bool, config: Path | None) -> None:
    """List the providers: name, dialects, where the key is looked for, address.

    A line that begins with * has a key in this environment, or works without one.
    """
    if context.invoked_subcommand is not None:
        return
    with terminal.told_faults():
        catalogue = _catalogue(config)
    for provider in sorted(catalogue.values(), key=lambda each: each.name):
        click.echo(json.dumps(_as_json(provider)) if is_json else _as_line(provider))


@providers.command()
@click.argument("name")
@click.option("--model", required=True, metavar="ID", help="Which model to ask.")
@click.option("--dialect", type=click.Choice([each.value for each in Dialect]))
@click.option("--effort", metavar="WORD", help="How hard the model thinks, from none to max.")
@click.option("--record", type=click.Path(file_okay=False, path_type=Path),
              help="Keep the raw exchanges in a folder, without secrets.")  # fmt: skip
@click.option("--config", type=click.Path(path_type=Path), help="Another settings file.")
def check(
    name: str, model: str, dialect: str | None, effort: str | None, record: Path | None, config: Path | None
) -> None:
    """Make two small real requests with a tool, and say what works.

    Exit code 0 if everything works, 1 if not, 2 if there is no such provider or no key.
    """
    with terminal.told_faults():
        provider = find(name, _catalogue(config))
        choice = choose(provider, model, dialect=Dialect(dialect) if dialect else None, effort=effort)
    terminal.run_async(_check, choice, record)


async def _check(choice: Choice, record: Path | None) -> int:
    key = await find_key(choice.provider, os.environ)
    recorder = Recorder(record, Redactor([key] if key else [])) if record else None
    terminal.say(f"asking {choice.model} at {choice.url} ({choice.dialect})")
    async with Line(choice, key, recorder=recorder) as line:
        findings = await try_out(line)
    for finding in findings:
        click.echo(_finding_line(finding))
    return terminal.DONE if all(finding.works for finding in findings) else terminal.FAILED


def _finding_line(finding: Finding) -> str:
    return f"{'works' if finding.works else 'FAILS'}  {finding.name}: {finding.seen}"


def _catalogue(config: Path | None) -> Catalogue:
    return with_settings(load_settings(config).settings.providers, KNOWN)


def _has_key(provider: Provider) -> bool:
    if provider.key_command or provider.key_file or provider.key_optional:
        return True
    return any(os.environ.get(name) for name in provider.key_env)


def _as_line(provider: Provider) -> str:
    mark = "*" if _has_key(provider) else " "
    dialects = ",".join(endpoint.dialect for endpoint in provider.endpoints)
    keys = " or ".join(provider.key_env) or "no key"
    lines = [
        f"{mark} {provider.name:<13} {keys}",
        f"    {provider.title}: {provider.endpoints[0].base_url} ({dialects})",
        *([f"    {provider.note}"] if provider.note else []),
    ]
    return "\n".join(lines)


def _as_json(provider: Provider) -> dict[str, object]:
    return {
        "name": provider.name,
        "title": provider.title,
        "endpoints": {endpoint.dialect.value: endpoint.base_url for endpoint in provider.endpoints},
        "key_env": provider.key_env,
        "has_key": _has_key(provider),
        "idle_timeout_s": provider.idle_timeout_s,
        "note": provider.note,
    }
