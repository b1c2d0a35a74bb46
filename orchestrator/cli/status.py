"""`pocketbuild status`: what the service is doing, for people."""

import json
from pathlib import Path

import click

from builder_bridge.health import THERMAL_WORDS
from orchestrator.cli import connect, terminal
from orchestrator.client import JsonObject, open_client
from orchestrator.errors import ServiceUnreachable
from orchestrator.settings import Settings, load_settings


@click.command()
@click.argument("build_id", required=False)
@click.option("--json", "is_json", is_flag=True, help="As one JSON object.")
@click.option("--config", type=click.Path(path_type=Path), help="Another settings file.")
def status(build_id: str | None, is_json: bool, config: Path | None) -> None:
    """Show the running service: phones, what they build, what waits; or one build by its id."""
    with terminal.told_faults():
        settings = load_settings(config).settings
    terminal.run_async(_status, settings, build_id, is_json)


async def _status(settings: Settings, build_id: str | None, is_json: bool) -> int:
    url = settings.service_url or connect.running_service(settings.data_dir)
    if url is None:
        raise ServiceUnreachable(
            f"no service runs on {settings.data_dir}",
            hint="Start one with `pocketbuild serve`; `pocketbuild build` and `agent` need none.",
        )
    # The note of a service that was killed names one that will not come back by itself.
    async with terminal.one_fault(), open_client(url, connect.token_of(settings), patience_s=0) as client:
        if build_id is not None:
            shown = await client.build(build_id)
        else:
            page = await client.builds(limit=20)
            shown = {"url": url, "phones": await client.phones(), "builds": page["builds"]}
    if is_json:
        click.echo(json.dumps(shown, indent=2))
    elif build_id is not None:
        _tell_build(shown)
    else:
        _tell_service(shown)
    return terminal.DONE


def _tell_service(shown: JsonObject) -> None:
    click.echo(f"service at {shown['url']}")
    for phone in shown["phones"]:
        doing = f"builds {phone['build'] or 'for somebody else'}" if phone["is_busy"] else phone["state"]
        if doing == "online" and phone["resting"]:
            doing = f"rests: {phone['resting']}"
        reason = f": {phone['reason']}" if phone["reason"] else ""
        click.echo(f"phone {phone['address']}  pool {phone['pool'] or '-'}  {doing}{reason}")
        if phone["health"] and phone["state"] == "online":
            click.echo(f"  {health_text(phone['health'])}")
    for build in shown["builds"]:
        state = build["outcome"] or f"{build['state']} ({build['stage']})"
        reason = f"  {build['reason']}" if build["reason"] else ""
        click.echo(f"build {build['id']}  {build['project']}  {build['owner']}  {state}{reason}")


def health_text(health: JsonObject) -> str:
    """Say how a phone feels, and what it does not tell."""
    told = []
    if health.get("battery_percent") is not None:
        filling = {"True": " and charging", "False": " and not charging"}.get(
            str(health.get("is_charging")), ""
        )
        told.append(f"battery {health['battery_percent']} %{filling}")
    if health.get("heat_celsius") is not None:
        told.append(f"{health['heat_celsius']:.0f} °C")
    if health.get("thermal_status") is not None:
        told.append(f"thermal status {THERMAL_WORDS[health['thermal_status']]}")
    if health.get("free_bytes") is not None:
        told.append(f"{terminal.size(health['free_bytes'])} free")
    if health.get("is_set_by_hand"):
        told.append("held at these values by hand")
    unknown = health.get("unknown")
    return "; ".join([*told, f"unknown: {', '.join(unknown)}"] if unknown else told)


def _tell_build(build: JsonObject) -> None:
    from orchestrator.cli.build import stages_text

    click.echo(f"build {build['id']} of {build['project']}: {build['outcome'] or build['state']}")
    for key in ("stage", "reason", "cause", "exit_code", "created", "started", "finished"):
        if build[key] is not None:
            click.echo(f"  {key}: {build[key]}")
    for run in build["runs"]:
        click.echo(f"  attempt {run['attempt']} on {run['phone']} ({run['route']}): {run['state']}")
        click.echo(f"    {stages_text(run['stage_s'])}")
    for artifact in build["artifacts"]:
        click.echo(f"  {artifact['path']}  {terminal.size(artifact['size_bytes'])}")
