"""`pocketbuild agent`: let a model work on a workspace until its build is green."""

import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import anyio
import click
from anyio import to_thread

from agent.approval import Mode
from agent.budget import Budget
from agent.decide import StopReason
from agent.entries import Began, Entry
from agent.errors import SettingsFault
from agent.message import Dialect
from agent.runner import RunResult, Verify, ended_well
from agent.scripted.address import SCRIPTED_PROVIDER
from agent.show import to_markdown
from agent.transcript import read_transcript
from builder_bridge.routes.probe import ROUTE_NAMES
from orchestrator.agent_order import AgentOrder, carry_out, order_of
from orchestrator.agent_run import Manners, ModelChoice, equipped, new_run_id, run_folder
from orchestrator.cli import connect, terminal
from orchestrator.cli.agent_list import list_runs
from orchestrator.cli.agent_screen import Screen
from orchestrator.cli.build import named_phone, settings_for
from orchestrator.cli.build_secrets import agent_secrets
from orchestrator.cli.terminal import say
from orchestrator.cli.transcript import as_json, as_text
from orchestrator.errors import NotFound
from orchestrator.settings import Settings, load_settings

_MODES = {None: Mode.YES, "yes": Mode.YES, "ask": Mode.ASK, "read-only": Mode.READ_ONLY}


class _RunByDefault(click.Group):
    """A group whose first word may also be an assignment: then it is `run`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_RunByDefault)
def agent() -> None:
    """Let a model work on a workspace until its build is green.

    `pocketbuild agent "ASSIGNMENT" --workspace DIR` is short for `pocketbuild agent run …`.

    Exit codes: 0 green or answered, 1 stopped without success, 2 usage or settings, 3 refused,
    4 provider, service or phone cannot be reached, 130 interrupted (resume with `--resume`).
    """


@dataclass(frozen=True, slots=True)
class _Wish:
    """What the command line asked for; `say` is a further word to a run that is gone on with."""

    order: AgentOrder
    resume_id: str | None
    say: str | None
    route: str | None
    record: Path | None
    is_json: bool


@agent.command(name="run")
@click.argument("assignment", required=False)
@click.option("--workspace", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".")
@click.option("--resume", "resume_id", metavar="ID", help="Go on with a run that was put down or killed.")
@click.option("--provider", metavar="NAME", help="Whose model; see `pocketbuild providers`.")
@click.option("--model", metavar="ID", help="Which model.")
@click.option("--base-url", metavar="URL", help="Any address that speaks one of the dialects.")
@click.option("--dialect", type=click.Choice([each.value for each in Dialect]))
@click.option("--effort", metavar="WORD", help="How hard the model thinks, from none to max.")
@click.option("--script", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="A recorded conversation answers instead of a model; the output says so.")  # fmt: skip
@click.option("--device", metavar="SERIAL|HOST:PORT", help="The phone to build on; else any that is free.")
@click.option(
    "--route", type=click.Choice(ROUTE_NAMES), help="How builds reach the prefix; else as the phone is set."
)
@click.option(
    "--yes", "mode", flag_value="yes", help="Changes need no approval (default; a resumed run as before)."
)
@click.option("--ask", "mode", flag_value="ask", help="Ask before each change.")
@click.option("--read-only", "mode", flag_value="read-only", help="Look and build, change nothing.")
@click.option("--verify", type=click.Choice([each.value for each in Verify]), default=Verify.CHANGED.value,
              help="When a green build is wanted at the end.", show_default=True)  # fmt: skip
@click.option("--turns", type=int, help="Budget: requests to the model.")
@click.option("--tokens", type=int, help="Budget: tokens in and out.")
@click.option("--money", type=float, help="Budget: US dollars.")
@click.option("--builds", type=int, help="Budget: builds.")
@click.option("--minutes", type=float, help="Budget: time at work.")
@click.option("--phone-minutes", type=float, help="Budget: time that builds hold a phone.")
@click.option("--record", type=click.Path(file_okay=False, path_type=Path),
              help="Keep raw exchanges with the provider in a folder, without secrets.")  # fmt: skip
@click.option("--output", type=click.Choice(["text", "json"]), default="text", help="json: an event a line.")
@click.option("--config", type=click.Path(path_type=Path), help="Another settings file.")
def run_command(config: Path | None, **given: Any) -> None:
    """Work on an ASSIGNMENT in a workspace; `-` reads it from standard input.

    With --resume the run goes on in its own workspace, as freely as it was begun unless --yes, --ask or
    --read-only says else, and an ASSIGNMENT is a further word to the model.
    """
    assignment = given["assignment"]
    if assignment is None and given["resume_id"] is None:
        raise click.UsageError("give an assignment, or --resume with the id of a run")
    if assignment == "-":
        assignment = sys.stdin.read()
    began: Began | None = None
    with terminal.told_faults():
        settings = load_settings(config).settings
        workspace = given["workspace"]
        if given["resume_id"]:
            entries = _entries(settings, given["resume_id"])
            if assignment is None and (result := ended_well(entries)) is not None:
                _tell_ended(result, is_json=given["output"] == "json")
            began = _began(entries)
            workspace = Path(began.workspace)
        settings = settings_for(workspace, config).settings
        choice = _model_choice(settings, given, began)
    before = None if began is None else order_of(began)
    order = AgentOrder(
        assignment=assignment if before is None else before.assignment,
        workspace=workspace,
        choice=choice,
        mode=_MODES[given["mode"]] if given["mode"] or before is None else before.mode,
        verify=Verify(given["verify"]),
        budget=_budget(settings, given),
        phone=given["device"],
    )
    wish = _Wish(
        order=order,
        resume_id=given["resume_id"],
        say=None if before is None else assignment,
        route=given["route"],
        record=given["record"],
        is_json=given["output"] == "json",
    )
    terminal.run_async(_run, settings, wish)


agent.add_command(list_runs)


@agent.command()
@click.argument("run_id")
@click.option("--json", "form", flag_value="json", help="The transcript's own JSON lines.")
@click.option("--markdown", "form", flag_value="markdown", help="As Markdown.")
@click.option("--config", type=click.Path(path_type=Path), help="Another settings file.")
def show(run_id: str, form: str | None, config: Path | None) -> None:
    """Show what happened in a run, which may still be under way."""
    with terminal.told_faults():
        entries = _entries(load_settings(config).settings, run_id)
    if form == "json":
        click.echo(as_json(entries))
    else:
        click.echo(terminal.plain(to_markdown(entries) if form == "markdown" else as_text(entries)))


async def _run(settings: Settings, wish: _Wish) -> int:
    from orchestrator.builder import ServiceBuilder
    from orchestrator.observe import set_up_logs

    set_up_logs(settings)
    order, screen = wish.order, Screen(is_json=wish.is_json)
    stop = _Interrupt(screen)
    run_id = wish.resume_id or new_run_id()
    async with terminal.one_fault(), connect.service(settings) as client, anyio.create_task_group() as tasks:
        phone = order.phone and await named_phone(client, order.phone, wish.route)
        manners = Manners(
            mode=order.mode,
            asker=screen.ask if order.mode is Mode.ASK or sys.stdin.isatty() else None,
            is_interrupted=lambda: stop.is_asked,
            record=wish.record,
        )
        secrets = await to_thread.run_sync(agent_secrets, settings)
        builder = ServiceBuilder(client, phone, route=wish.route, secrets=secrets)
        tasks.start_soon(stop.listen, tasks.cancel_scope)
        async with equipped(settings, order.choice, builder, run_id, screen.show, manners) as equipment:
            is_begun = wish.resume_id is not None
            result = await carry_out(order, equipment, run_id, is_begun=is_begun, say=wish.say)
        tasks.cancel_scope.cancel()
    if stop.was_hard:
        say(f"stopped at once; go on with `pocketbuild agent --resume {run_id}`")
        return terminal.INTERRUPTED
    screen.end(result)
    return exit_code_of(result.reason)


class _Interrupt:
    """Ctrl-C once puts the run down after the step at work, twice, or while it only asks, at once."""

    def __init__(self, screen: Screen) -> None:
        self.is_asked = False
        self.was_hard = False
        self._screen = screen

    async def listen(self, scope: anyio.CancelScope) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for _ in signals:
                if self.is_asked or self._screen.is_asking:
                    self.was_hard = True
                    scope.cancel()
                    return
                self.is_asked = True
                say("stopping after this step; press Ctrl-C again to stop at once")


def exit_code_of(reason: StopReason) -> int:
    """Give the exit code for why a run ended."""
    if reason.is_success:
        return terminal.DONE
    codes = {StopReason.INTERRUPTED: terminal.INTERRUPTED, StopReason.PROVIDER: terminal.UNREACHABLE}
    return codes.get(reason, terminal.FAILED)


def _entries(settings: Settings, run_id: str) -> list[Entry]:
    folder = run_folder(settings, run_id)
    if not folder.is_dir():
        raise NotFound(f"there is no run {run_id} of an agent", hint="See `pocketbuild agent list`.")
    entries = read_transcript(folder)
    if not entries:
        raise NotFound(f"run {run_id} was killed before it began", hint="Begin it anew.")
    return entries


def _began(entries: list[Entry]) -> Began:
    assert isinstance(entries[0], Began)
    return entries[0]


def _tell_ended(result: RunResult, *, is_json: bool) -> NoReturn:
    """Say that a run has nothing left to do, and how to give it something; ends the command."""
    Screen(is_json=is_json).end(result)
    say(f"run {result.run_id} has ended: there is nothing to go on with")
    say(f'  give it more to do with `pocketbuild agent "…" --resume {result.run_id}`')
    sys.exit(exit_code_of(result.reason))


def _model_choice(settings: Settings, given: dict[str, Any], began: Began | None) -> ModelChoice:
    provider, model = given["provider"], given["model"]
    if began is not None and provider is None and given["base_url"] is None and given["script"] is None:
        provider, model = began.provider, model or began.model
        if provider == SCRIPTED_PROVIDER and provider not in settings.providers:
            raise SettingsFault(
                f"run {began.run_id} was answered by a recorded script, which is not kept with it",
                hint="Name its file again with --script, or go on with --provider and --model.",
            )
    dialect = given["dialect"]
    return ModelChoice(
        provider=provider,
        model=model,
        base_url=given["base_url"],
        dialect=None if dialect is None else Dialect(dialect),
        effort=given["effort"],
        script=given["script"],
    )


def _budget(settings: Settings, given: dict[str, Any]) -> Budget:
    limits = settings.agent.budget()
    chosen = {name: given[name] for name in ("turns", "tokens", "money", "builds") if given[name] is not None}
    for name, minutes in (("wall_s", given["minutes"]), ("phone_s", given["phone_minutes"])):
        if minutes is not None:
            chosen[name] = minutes * 60
    return Budget(**{**limits, **chosen})
