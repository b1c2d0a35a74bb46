"""`pocketbuild apk`: look into APK, AAB and AAR files."""

import json
from pathlib import Path

import click

from builder_bridge.inspect.difference import difference
from builder_bridge.inspect.package import PackageFault
from builder_bridge.inspect.reader import inspect_package
from builder_bridge.inspect.rendering import (
    difference_to_json,
    package_to_json,
    render_difference,
    render_package,
)


@click.command()
@click.argument(
    "files",
    metavar="FILE...",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, one for each file.")
@click.option(
    "--since",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="An earlier package to compare each file with.",
)
def apk(files: tuple[Path, ...], as_json: bool, since: Path | None) -> None:
    """Say what the APK, AAB or AAR FILE... is: versions, permissions, ABIs, signers, sizes.

    Nothing is unpacked or run. The exit code is 1 where a file cannot be read.
    """
    is_good = True
    try:
        earlier = inspect_package(since) if since else None
    except PackageFault as fault:
        raise click.ClickException(str(fault)) from fault
    for file in files:
        try:
            package = inspect_package(file)
        except PackageFault as fault:
            is_good = False
            click.echo(
                json.dumps({"file": str(file), "fault": str(fault)}) if as_json else str(fault),
                err=not as_json,
            )
            continue
        changes = difference(earlier, package) if earlier else None
        if as_json:
            body = {"file": str(file), **package_to_json(package)}
            if changes:
                body["since"] = difference_to_json(changes)
            click.echo(json.dumps(body, ensure_ascii=False))
        else:
            click.echo(render_package(package, file.name))
            if changes:
                click.echo(render_difference(changes))
    if not is_good:
        raise click.exceptions.Exit(1)
