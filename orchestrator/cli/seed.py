"""`pocketbuild seed`: bring Maven artifacts into the offline repository of a phone's prefix."""

import json
from pathlib import Path

import click

from builder_bridge.adb import connect
from builder_bridge.bridge import DEFAULT_ROUTES
from builder_bridge.prefix.pom import Coordinate, PomFault, parse_coordinate
from builder_bridge.prefix.seed import SeedReport, open_repositories
from builder_bridge.prefix.seed import seed as bring
from builder_bridge.routes.probe import ROUTE_NAMES, pick_route
from orchestrator.cli import terminal
from orchestrator.cli.connect import load_quietly
from orchestrator.cli.terminal import say, size
from orchestrator.errors import SettingsFault
from orchestrator.observe import set_up_logs
from orchestrator.settings import default_config_file


@click.command()
@click.argument("coordinates", nargs=-1, required=True, metavar="COORDINATE...")
@click.option(
    "--from",
    "places",
    multiple=True,
    metavar="REPOSITORY",
    help="An http(s) URL or a folder such as ~/.m2/repository; may be given several times.",
)
@click.option("--device", metavar="SERIAL|HOST:PORT", help="The phone; else the only one there is.")
@click.option("--route", type=click.Choice(ROUTE_NAMES), help="How the prefix is reached.")
@click.option("--json", "is_json", is_flag=True, help="Write what was brought as one JSON object.")
@click.option("--config", type=click.Path(path_type=Path), help="Another settings file.")
def seed(
    coordinates: tuple[str, ...],
    places: tuple[str, ...],
    device: str | None,
    route: str | None,
    is_json: bool,
    config: Path | None,
) -> None:
    """Bring each COORDINATE (group:name:version) and what it needs to a phone, for its offline builds.

    Without --from, the setting `repositories` says where from; the first that has a file gives it.
    Exit code 1 says that something which others need was found nowhere; the rest was brought.
    """
    try:
        wanted = tuple(parse_coordinate(text) for text in dict.fromkeys(coordinates))
    except PomFault as fault:
        raise click.BadParameter(str(fault), param_hint="COORDINATE") from fault
    with terminal.told_faults():
        settings = load_quietly(config).settings
        set_up_logs(settings)
        chosen = places or settings.repositories
        if not chosen:
            raise SettingsFault(
                "no Maven repository is named",
                hint="Give --from with a URL or a folder such as ~/.m2/repository, or set "
                f'`repositories = ["…"]` in {config or default_config_file()}.',
            )
    routes = DEFAULT_ROUTES if route is None else (route,)
    terminal.run_async(_seed, wanted, chosen, device, routes, is_json)


async def _seed(
    wanted: tuple[Coordinate, ...],
    places: tuple[str, ...],
    device: str | None,
    routes: tuple[str, ...],
    is_json: bool,
) -> int:
    async with (
        terminal.one_fault(),
        open_repositories(places) as repositories,
        connect(device, on_dialog=say) as adb,
    ):
        reached = await pick_route(adb, routes)
        report = await bring(reached, wanted, repositories)
        _tell(report, adb.serial, reached.name, is_json)
    return terminal.FAILED if report.missing else terminal.DONE


def _tell(report: SeedReport, serial: str, route: str, is_json: bool) -> None:
    if is_json:
        document = {
            "serial": serial,
            "route": route,
            "brought": list(report.brought),
            "present": list(report.present),
            "missing": list(report.missing),
            "size_bytes": report.size_bytes,
        }
        click.echo(json.dumps(document, indent=1))
        return
    for path in report.brought:
        click.echo(f"brought  {path}")
    for path in report.present:
        click.echo(f"present  {path}")
    for sentence in report.missing:
        click.echo(f"missing  {sentence}")
    click.echo(
        f"{len(report.brought)} files brought ({size(report.size_bytes)}), {len(report.present)} were there, "
        f"{len(report.missing)} missing."
    )
