"""A conversation as a script: what the provider says turn by turn, and what it expects to be told.

Scripts are TOML files:

    schema = 1
    title = "repair a compile error"

    [[turn]]
    text = "First I build."
    calls = [{ tool = "build_gradle_project", arguments = { variant = "debug" } }]

    [[turn]]
    expects = { results = [{ tool = "build_gradle_project", contains = ["cannot find symbol"] }] }
    text = "Done."

Each turn may also have `reasoning`, `finish` (the finish reason to claim), `usage`, `hostile` (the name of
a flaw of `agent.scripted.hostile`), `failures` (HTTP errors served before the turn), `piece_bytes`,
`wait_s` and `cut_after_bytes`.
"""

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent.errors import SettingsFault
from agent.message import FinishReason
from agent.scripted.hostile import Flavor


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Call(_Strict):
    """A tool call that the provider announces."""

    tool: str
    arguments: dict[str, Any] = {}


class ExpectedResult(_Strict):
    """A tool result that the client must have sent: all texts of `contains`, none of `lacks`."""

    tool: str
    contains: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()


class Expected(_Strict):
    """What a request must hold for its turn to be served; `results` are those since the last turn."""

    user_contains: tuple[str, ...] = ()
    results: tuple[ExpectedResult, ...] | None = None


class Failure(_Strict):
    """An HTTP error that is served `times` times before the turn."""

    status: int = Field(ge=300, le=599)
    retry_after_s: float | None = None
    body: dict[str, Any] = {}
    times: int = Field(default=1, ge=1)


class TokenCounts(_Strict):
    """The token counts that a turn claims."""

    input: int = 1000
    output: int = 50
    cached: int = 0


class Turn(_Strict):
    """One response of the provider.

    `hostile_times` says how often the turn is served with its flaw; later it is served sound. The body
    goes out in pieces of `piece_bytes`, each after `wait_s`; `cut_after_bytes` breaks the connection.
    """

    expects: Expected = Expected()
    text: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    finish: FinishReason | None = None
    usage: TokenCounts = TokenCounts()
    hostile: Flavor | None = None
    hostile_times: int = 1_000_000
    failures: tuple[Failure, ...] = ()
    piece_bytes: Annotated[int, Field(ge=1)] | None = None
    wait_s: float = 0.0
    cut_after_bytes: Annotated[int, Field(ge=0)] | None = None
    cut_times: int = 1

    @property
    def claimed_finish(self) -> FinishReason:
        """The finish reason that the response claims."""
        return self.finish or (FinishReason.TOOL_CALLS if self.calls else FinishReason.STOP)


class Conversation(_Strict):
    """A whole script. `schema` is 1."""

    schema_number: Literal[1] = Field(default=1, alias="schema")
    title: str
    turns: tuple[Turn, ...] = Field(alias="turn", min_length=1)

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


def load_conversation(path: Path) -> Conversation:
    """Read a script; raises `SettingsFault` that names the place and what is wrong there."""
    try:
        return Conversation.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as fault:
        raise SettingsFault(f"script {path} cannot be read: {fault.strerror}") from fault
    except tomllib.TOMLDecodeError as fault:
        raise SettingsFault(f"script {path} is not TOML: {fault}") from fault
    except ValidationError as fault:
        first = fault.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise SettingsFault(f"script {path}: {place}: {first['msg'].lower()}") from fault
