"""`pocketbuild build`: build a workspace on a phone, and bring log and artifacts here."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import anyio
import click

from builder_bridge.build import BuildId
from builder_bridge.errors import PhoneUnavailable
from builder_bridge.routes.probe import ROUTE_NAMES
from orchestrator.cli import connect, terminal
from orchestrator.cli.build_progress import ProgressScreen
from orchestrator.cli.build_secrets import read_secrets, secret_options
from orchestrator.cli.terminal import say, seconds, size
from orchestrator.client import ApiClient, Refused
from orchestrator.settings import LoadedSettings, load_settings

PHONE_ANSWER_S = 30.0
NEXT_STEP = "Or name another phone: `pocketbuild phone list` shows them."
_READ_ON = re.compile(r"read_build_log\([^)]*\)")
STAGES = ("scan", "upload", "received", "unpack", "gradle", "collect", "fetch", "explain")


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """What the command line asked for."""

    workspace: Path
    wish: dict[str, Any] = field(repr=False)
    device: str | None
    route: str | None
    output: Path
    is_json: bool
    is_quiet: bool
    is_verbose: bool


@click.command()
@click.argument("workspace", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".")
@click.option(
    "--task", "tasks", multiple=True, metavar="PATH", help="Gradle task; may be given several times."
)
@click.option(
    "--arg", "args", multiple=True, metavar="ARG", help="A further Gradle argument, like --arg=-Pk=v."
)
@click.option("--clean", is_flag=True, help="Forget what earlier builds of this workspace left on the phone.")
@click.option("--project-dir", default=".", metavar="DIR", help="The Gradle root inside the workspace.")
@click.option("--device", metavar="SERIAL|HOST:PORT", help="The phone to build on; else any that is free.")
@click.option(
    "--route",
    type=click.Choice(ROUTE_NAMES),
    help="How this build reaches the prefix; else as the phone is set.",
)
@click.option("--deadline", "deadline_s", type=float, default=3600.0, metavar="SECONDS", show_default=True)
@click.option("--priority", type=click.Choice(["urgent", "normal", "background"]), default="normal")
@click.option("--force", is_flag=True, help="Build again although this very content was built before.")
@secret_options
@click.option("--output", type=click.Path(path_type=Path), help="Where log and artifacts go.")
@click.option(
    "--json", "is_json", is_flag=True, help="Write the result as one JSON object on standard output."
)
@click.option("--quiet", "is_quiet", is_flag=True, help="No progress.")
@click.option("--verbose", "is_verbose", is_flag=True, help="Show Gradle's whole log as it comes.")
@click.option("--config", type=click.Path(path_type=Path), help="Another settings file.")
def build(workspace: Path, config: Path | None, **given: Any) -> None:
    """Build WORKSPACE on a phone, offline, and bring log and artifacts here.

    Stopping this command with Ctrl-C does not stop the build: the same command takes it up again.
    """
    wish = {
        "tasks": list(given["tasks"] or ("assembleDebug",)),
        "args": list(given["args"]),
        "clean": given["clean"],
        "project_dir": given["project_dir"],
        "deadline_s": given["deadline_s"],
        "priority": given["priority"],
        "force": given["force"],
    }
    options = BuildOptions(
        workspace=workspace,
        wish=wish,
        device=given["device"],
        route=given["route"],
        output=given["output"] or default_output(workspace),
        is_json=given["is_json"],
        is_quiet=given["is_quiet"],
        is_verbose=given["is_verbose"],
    )
    with terminal.told_faults():
        loaded = settings_for(workspace, config)
        wish |= read_secrets(loaded.settings, given["secrets"], given["secret_files"])
    terminal.run_async(_build, loaded, options)


def settings_for(workspace: Path, config: Path | None) -> LoadedSettings:
    """Load settings for a command that works on a folder of this machine; it may take that folder."""
    roots = load_settings(config).settings.workspace_roots
    return connect.load_quietly(config, workspace_roots=[*roots, workspace.resolve()])


def default_output(workspace: Path) -> Path:
    """Say where results go: `out/NAME` here, or into the workspace's own `build` folder if this is it."""
    real = workspace.resolve()
    here = Path.cwd()
    return real / "build/pocketbuild" if here.is_relative_to(real) else here / "out" / real.name


async def _build(loaded: LoadedSettings, options: BuildOptions) -> int:
    from orchestrator.observe import set_up_logs

    set_up_logs(loaded.settings)
    async with terminal.one_fault(), connect.service(loaded.settings) as client:
        wish = dict(options.wish)
        if options.device is not None:
            wish["phone"] = await named_phone(client, options.device, options.route)
        if options.route is not None:
            wish["route"] = options.route
        accepted = await client.submit_workspace(options.workspace, wish)
        build_id = BuildId(accepted["id"])
        is_over = accepted["state"] == "finished"
        if not options.is_quiet:
            say(f"build {build_id} {_how(is_joined=accepted['is_joined'], is_over=is_over)}")
        try:
            if not is_over:
                await watch(client, build_id, options)
        except anyio.get_cancelled_exc_class():
            say(f"build {build_id} goes on; run the command again to take it up")
            raise
        finished = await client.build(build_id)
        files = await bring(client, finished, options.output)
        await _tell(client, finished, files, options)
        return exit_code_of(finished)


def _how(*, is_joined: bool, is_over: bool) -> str:
    if is_joined and is_over:
        return "is of this very content and has ended; --force builds again"
    return "joined" if is_joined else "submitted"


async def named_phone(client: ApiClient, name: str, route: str | None) -> str:
    """Make sure that the service knows a phone and that it answers; give the name it has there.

    A phone that is new, or that does not answer by its own route, is from now on reached by the one
    that is named here. Raises `PhoneUnavailable` for one that does not answer, and leaves nothing of
    the attempt behind: a person at a terminal wants to know at once.
    """
    found = [phone for phone in await client.phones() if name in (phone["address"], phone["serial"])]
    known = found[0] if found else None
    if known is None:
        await client.add_phone(name, None, route)
    elif known["state"] == "offline":
        await client.add_phone(known["address"], known["pool"], route or known["route"])
    try:
        return await _answered(client, name)
    except PhoneUnavailable:
        if known is None:
            await client.remove_phone(name)
        elif route not in (None, known["route"]):
            await client.add_phone(known["address"], known["pool"], known["route"])
        raise


async def _answered(client: ApiClient, name: str) -> str:
    with anyio.move_on_after(PHONE_ANSWER_S):
        while True:
            phone = next(each for each in await client.phones() if name in (each["address"], each["serial"]))
            if phone["is_busy"] or phone["state"] == "online":
                return name
            if phone["state"] == "offline":
                raise PhoneUnavailable(str(phone["reason"]), serial=name, hint=NEXT_STEP)
            await anyio.sleep(0.05)
    raise PhoneUnavailable(f"{name} did not answer within {PHONE_ANSWER_S:.0f} s", serial=name)


async def watch(client: ApiClient, build_id: BuildId, options: BuildOptions) -> None:
    """Show a build until it has ended."""
    from orchestrator.build_watch import BuildWatch, history_before

    history = await history_before(client, await client.build(build_id))
    progress = ProgressScreen(is_quiet=options.is_quiet, is_verbose=options.is_verbose)
    feed = BuildWatch(build_id, progress.show, options.workspace, history)
    try:
        async for event in client.follow(build_id):
            progress.note(event)
            await feed.see(event)
    finally:
        progress.end()


async def bring(client: ApiClient, finished: Mapping[str, Any], output: Path) -> list[Path]:
    """Bring log and artifacts of an ended build into a folder; give the artifacts' paths."""
    await anyio.Path(output).mkdir(parents=True, exist_ok=True)
    if finished["runs"]:
        await client.download(f"/v1/builds/{finished['id']}/log", output / "build.log")
    files = []
    for artifact in finished["artifacts"]:
        path = output / _file_name(artifact, finished["artifacts"])
        await client.download(f"/v1/builds/{finished['id']}/artifacts/{artifact['number']}", path)
        files.append(path)
    return files


def _file_name(artifact: Mapping[str, Any], others: list[Mapping[str, Any]]) -> str:
    """Name an artifact's file here; two of one name are told apart by their number."""
    name = PurePosixPath(artifact["path"]).name
    names = [PurePosixPath(other["path"]).name for other in others]
    return name if names.count(name) == 1 else f"{artifact['number']}-{name}"


async def _tell(
    client: ApiClient, finished: Mapping[str, Any], files: list[Path], options: BuildOptions
) -> None:
    if options.is_json:
        result = {
            **finished,
            "files": [str(path) for path in files],
            "log": str(options.output / "build.log"),
            "digest": await _digest(client, finished),
        }
        click.echo(json.dumps(result, indent=2))
        return
    if finished["outcome"] != "succeeded":
        text = await digest_text(client, finished)
        # A digest names the agent's tool for reading on; here the log is a file.
        click.echo(_READ_ON.sub(str(options.output / "build.log"), text))
    for path, artifact in zip(files, finished["artifacts"], strict=True):
        click.echo(f"{path}  {size(artifact['size_bytes'])}  sha256 {artifact['sha256']}")
    run = finished["runs"][-1] if finished["runs"] else None
    if run is not None:
        stages = stages_text(run["stage_s"])
        way = f" ({run['route']})" if run["route"] else ""
        say(f"{finished['outcome']} on {run['phone']}{way}{stages and f'; {stages}'}")


async def _digest(client: ApiClient, finished: Mapping[str, Any]) -> dict[str, Any] | None:
    try:
        return dict((await client.digest(finished["id"]))["digest"])
    except Refused:
        return None


async def digest_text(client: ApiClient, finished: Mapping[str, Any]) -> str:
    """Give what a person should read of a build that did not succeed."""
    try:
        return str((await client.digest(finished["id"]))["text"])
    except Refused:
        hint = f"\n{finished['reason']}" if finished["reason"] else ""
        return f"build {finished['id']} was {finished['outcome']}: {finished['cause']}{hint}"


def stages_text(stage_s: Mapping[str, float]) -> str:
    """Show how long each stage took, in the order in which they happen."""
    known = [name for name in STAGES if name in stage_s]
    further = [name for name in stage_s if name not in STAGES]
    return ", ".join(f"{name} {seconds(stage_s[name])}" for name in (*known, *further))


def exit_code_of(finished: Mapping[str, Any]) -> int:
    """Give the exit code for how a build ended."""
    codes = {"succeeded": terminal.DONE, "failed": terminal.FAILED}
    return codes.get(finished["outcome"], terminal.NOT_BUILT)
