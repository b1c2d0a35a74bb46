"""Gets an agent's run ready: which model answers, with which key, what it may do, where it is written."""

import os
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from agent.approval import Asker, Gate, Mode
from agent.errors import SettingsFault
from agent.http import Line
from agent.keys import find_key
from agent.message import Dialect
from agent.progress import OnProgress
from agent.providers.catalogue import KNOWN, Choice, choose, custom, find
from agent.providers.settings import with_settings
from agent.record import Recorder
from agent.redact import Redactor
from agent.runner import Equipment
from agent.scripted import ScriptedProvider, load_conversation
from agent.tools.build import Builder
from agent.tools.git import Author
from agent.tools.tool import AnyTool
from agent.transcript import Transcript
from orchestrator.errors import NotFound
from orchestrator.settings import Settings

SCRIPTED_MODEL = "script"


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Who answers: a provider of the catalogue, any address, or a script instead of a model."""

    provider: str | None = None
    model: str | None = None
    base_url: str | None = None
    dialect: Dialect | None = None
    effort: str | None = None
    script: Path | None = None


@dataclass(frozen=True, slots=True)
class Manners:
    """How a run behaves towards its person."""

    mode: Mode = Mode.YES
    asker: Asker | None = None
    is_interrupted: Callable[[], bool] = lambda: False
    record: Path | None = None


@asynccontextmanager
async def equipped(
    settings: Settings,
    wanted: ModelChoice,
    builder: Builder,
    run_id: str,
    on_progress: OnProgress,
    manners: Manners,
) -> AsyncIterator[Equipment]:
    """Open everything that a run works with, for the block.

    Raises `SettingsFault` for a provider, model or script that does not exist, `KeyMissing` where the
    provider wants a key and none is found.
    """
    async with AsyncExitStack() as stack:
        choice = await _choice(settings, wanted, stack)
        key = await find_key(choice.provider, os.environ)
        redactor = Redactor([key] if key else [])
        recorder = None if manners.record is None else Recorder(manners.record, redactor)
        line = await stack.enter_async_context(Line(choice, key, recorder=recorder))
        tools = await _further_tools(settings, stack)
        transcript = stack.enter_context(Transcript(run_folder(settings, run_id), redactor))
        yield Equipment(
            line=line,
            builder=builder,
            transcript=transcript,
            on_progress=on_progress,
            gate=Gate(manners.mode, settings.agent.approval_rules(), manners.asker),
            tools=tools,
            author=Author(settings.agent.author_name, settings.agent.author_email),
            is_interrupted=manners.is_interrupted,
        )


async def _further_tools(settings: Settings, stack: AsyncExitStack) -> tuple[AnyTool, ...]:
    """Open the tools that settings add; what they need is slow to load, so it is loaded here."""
    tools: tuple[AnyTool, ...] = ()
    if settings.agent.web:
        from agent.tools.web import WebFetcher

        tools += WebFetcher().tools()
    if settings.mcp:
        from agent.tools.mcp import mcp_tools

        tools += await stack.enter_async_context(mcp_tools(settings.mcp))
    return tools


def new_run_id() -> str:
    """Make an id for a run that sorts by time."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(2)}"


def run_folder(settings: Settings, run_id: str) -> Path:
    """Say where the transcript of a run lies."""
    if not run_id.replace("-", "").isalnum():
        raise NotFound(f"there is no run {run_id!r} of an agent")
    return settings.data_dir / "agents" / run_id


async def _choice(settings: Settings, wanted: ModelChoice, stack: AsyncExitStack) -> Choice:
    if wanted.script is not None:
        server = await stack.enter_async_context(ScriptedProvider(load_conversation(wanted.script)))
        return choose(server.provider, wanted.model or SCRIPTED_MODEL, dialect=wanted.dialect)
    model = wanted.model or settings.agent.model
    name = wanted.provider or settings.agent.provider
    missing = {"provider": name is None and wanted.base_url is None, "model": model is None}
    if model is None or missing["provider"]:
        raise SettingsFault(
            f"no {' and no '.join(each for each in missing if missing[each])} is chosen",
            hint="Give --provider and --model, or set agent.provider and agent.model; "
            "`pocketbuild providers` lists what is known.",
        )
    effort = wanted.effort or settings.agent.effort
    if wanted.base_url is not None:
        provider = custom(wanted.base_url, wanted.dialect or Dialect.OPENAI_CHAT, settings.agent.key_env)
    else:
        provider = find(str(name), with_settings(_tables(settings), KNOWN))
    return choose(provider, model, dialect=wanted.dialect, effort=effort)


def _tables(settings: Settings) -> Mapping[str, object]:
    return settings.providers
