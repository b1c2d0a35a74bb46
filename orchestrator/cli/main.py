"""The `pocketbuild` command: finds a group of commands and loads only that one."""

from importlib import import_module
from importlib.metadata import version

import click

_COMMANDS: dict[str, tuple[str, str]] = {
    "build": ("orchestrator.cli.build:build", "Build a workspace on a phone."),
    "agent": ("orchestrator.cli.agent:agent", "Let a model work on a workspace until its build is green."),
    "serve": ("orchestrator.cli.serve:serve", "Run the service."),
    "status": ("orchestrator.cli.status:status", "Show the service, its phones and builds."),
    "mcp": ("orchestrator.cli.mcp:mcp", "Serve builds to agents over MCP on standard input and output."),
    "token": ("orchestrator.cli.token:token", "Make, list and revoke access tokens."),
    "config": ("orchestrator.cli.config:config", "Print the effective settings and their source."),
    "seed": ("orchestrator.cli.seed:seed", "Bring Maven artifacts into a phone's offline repository."),
    "phone": ("orchestrator.cli.phone:phone", "List, connect and inspect phones."),
    "box": ("orchestrator.cli.box:box", "The phone in a box, where no phone is attached."),
    "stream": ("orchestrator.cli.stream:stream", "Explain recorded responses of model providers."),
    "log": ("orchestrator.cli.log:log", "Explain Gradle build logs."),
    "apk": ("orchestrator.cli.apk:apk", "Inspect APK, AAB and AAR files."),
    "providers": ("orchestrator.cli.providers:providers", "List and check model providers."),
}
"""Name → where the command lives and what it is for; help needs no import of them."""


class _LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _, attribute = _COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, purpose) for name, (_, purpose) in _COMMANDS.items()])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("pocketbuild"), prog_name="pocketbuild")
def main() -> None:
    """Build Android projects on a phone, offline."""
