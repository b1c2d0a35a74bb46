"""The hand-off protocol PB/1, as the host reads it: what the phone says, and what that means.

Everything that the phone's `pb` answers is one JSON line from a stranger: it is checked here and
turned into the bridge's own values or into a fault. Numbers that may exceed 31 bits come as text,
because the phone's shell cannot count that far.
"""

import json
import re
from dataclasses import dataclass
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from builder_bridge.build import BuildState, RunId, RunIdentity
from builder_bridge.errors import (
    BridgeError,
    PhoneBusy,
    PhoneLost,
    ProtocolFault,
    RouteUnavailable,
    RunConflict,
    StorageFull,
    TransferFault,
    UnknownRun,
)

PROTOCOL = 1
MAX_LINE_BYTES = 16 << 20
RUN_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Size = Annotated[int, Field(ge=0, le=1 << 60)]
PhoneState = Literal[
    "receiving", "received", "unpacking", "running", "collecting", "done", "failed", "cancelled"
]


class _Document(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    pb: Literal[1] = 1


class ArtifactDocument(_Document):
    """A file that the build made, as the phone describes it."""

    index: int = Field(ge=0, le=100_000)
    path: str = Field(min_length=1, max_length=4096)
    size: Size
    sha256: Sha256


class ResultDocument(_Document):
    """The phone's verdict on a run; `times` are lines of a stage's name and its moment in seconds."""

    run: str
    state: Literal["done", "failed", "cancelled"]
    exit_code: int | None
    cause: str | None
    log_size: Size
    log_sha256: Sha256
    artifacts: list[ArtifactDocument] = []
    times: list[str] = []
    facts: dict[str, str] = {}


class StateLine(_Document):
    """A state as the phone writes it, in `state.json` and on the second stream of a log.

    The last line of that stream carries the verdict, too.
    """

    state: PhoneState
    log_size: Size | None = None
    result: ResultDocument | None = None


class StatusDocument(_Document):
    """Where a run is. `boot_id` is the boot that the run belongs to, `boot_now` the phone's present one."""

    run: str
    digest: str
    state: StateLine
    pid: int = 0
    start_ticks: int = 0
    boot_id: str = ""
    boot_now: str = ""
    alive: bool = False
    beat: str = "0"
    log_size: Size = 0
    received: Size = 0

    @property
    def identity(self) -> RunIdentity | None:
        """Which process the run is, None where it has not been started."""
        return RunIdentity(self.pid, self.start_ticks, self.boot_id) if self.pid else None

    @property
    def build_state(self) -> BuildState:
        """The state that the phone wrote last."""
        return BuildState(self.state.state)


class OpenDocument(StatusDocument):
    """Also what the phone already holds of this workspace.

    `content` is the fingerprint of what was put there last. Since then builds have written to the
    paths `touched`, and names have come or gone in `folders` ("." is the workspace itself), in which
    now lie `names`, with the byte 1 for a line feed. Where so much has happened that it was not
    listed, `is_known` is False.
    """

    content: str = ""
    touched: list[str] = []
    folders: list[str] = []
    names: list[str] = []
    is_known: bool = True


class HaveDocument(_Document):
    """Which contents the phone lacks."""

    missing: list[Sha256]


class ReceivedDocument(_Document):
    """How much of an upload has arrived."""

    received: Size
    complete: bool


class RunsDocument(_Document):
    """All runs that the phone keeps."""

    runs: list[StatusDocument]


class SeededDocument(_Document):
    """Which of the artifacts that were asked about the offline repository has."""

    present: list[str]


class OkDocument(_Document):
    """Something was done, and there is no more to say."""

    ok: Literal[True]


AnyDocument = TypeVar("AnyDocument", bound=BaseModel)

_FAULTS: dict[str, type[BridgeError]] = {
    "unknown_run": UnknownRun,
    "no_such_file": UnknownRun,
    "run_conflict": RunConflict,
    "storage_full": StorageFull,
    "transfer_digest": TransferFault,
    "stale_content": TransferFault,
    "busy": PhoneBusy,
    "unwritable": RouteUnavailable,
    "not_started": PhoneLost,
}


_HINTS = {
    "busy": "Wait until what the message names has ended, or cancel it, then try again; nothing was started.",
}
"""Where the hint of a fault's class speaks of another case."""


def parse(line: bytes, kind: type[AnyDocument]) -> AnyDocument:
    """Read one JSON line of the phone.

    Raises the fault that the phone named, or `ProtocolFault` where the line is not what `kind` says.
    """
    document = _read_json(line)
    if "error" in document:
        code, detail = str(document["error"]), str(document.get("detail", ""))
        raise _FAULTS.get(code, ProtocolFault)(
            f"The phone's runner says {code}: {detail}.", hint=_HINTS.get(code)
        )
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ProtocolFault(f"The phone's {kind.__name__} is wrong at {where!r}: {first['msg']}.") from error


def _read_json(line: bytes) -> dict[str, object]:
    if len(line) > MAX_LINE_BYTES:
        raise ProtocolFault(f"The phone's runner answered {len(line)} bytes, where one line was due.")
    text = line.decode("utf-8", "replace").strip()
    try:
        document = json.loads(text, strict=False)
    except (ValueError, RecursionError) as error:
        raise ProtocolFault(f"The phone's runner answered {text[:200]!r}, which is no JSON line.") from error
    if not isinstance(document, dict) or document.get("pb") != PROTOCOL:
        raise ProtocolFault(f"The phone's runner answered {text[:200]!r}, which is not PB/{PROTOCOL}.")
    return document


class StateLines:
    """Reads states out of the second stream of a log, fed in pieces cut anywhere."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[StateLine]:
        """Give the states of the lines that are complete now; lines that are no state are passed over."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._rest = self._rest[-MAX_LINE_BYTES:]
        states = []
        for line in lines:
            try:
                states.append(StateLine.model_validate_json(line))
            except ValidationError:
                continue
        return states


@dataclass(frozen=True, slots=True)
class RunStatus:
    """Where a run is, judged by the host: a run whose process is gone without a verdict is lost.

    `has_rebooted` says that the phone has been started anew since; `beat` changes every five seconds
    while the runner lives.
    """

    run_id: RunId
    state: BuildState
    identity: RunIdentity | None
    log_size_bytes: int
    has_rebooted: bool
    beat: str


def judge(document: StatusDocument) -> RunStatus:
    """Say what a status means, by comparing the run's identity with what lives now."""
    state = document.build_state
    has_rebooted = bool(document.pid) and document.boot_id != document.boot_now
    if document.pid and not document.alive and not state.is_final:
        state = BuildState.LOST
    return RunStatus(
        run_id=RunId(document.run),
        state=state,
        identity=document.identity,
        log_size_bytes=document.log_size,
        has_rebooted=has_rebooted,
        beat=document.beat,
    )
