"""Bodies of requests and replies of the HTTP API. Nothing else uses them."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from orchestrator.engine.placement import NEEDS
from orchestrator.secret_fields import SecretFields
from orchestrator.settings import RouteName

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
TaskPath = Annotated[str, StringConstraints(pattern=r"^[:A-Za-z0-9_.][:A-Za-z0-9_.-]{0,199}$")]
GradleArgument = Annotated[str, StringConstraints(pattern=r"^-[^\x00-\x1f]{1,999}$")]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9 _.-]{0,99}$")]
AbsolutePath = Annotated[str, StringConstraints(max_length=4096, pattern=r"^/[^\x00]*$")]
NeedName = Annotated[str, StringConstraints(pattern=f"^(?:{'|'.join(sorted(NEEDS))})$")]
_STEP = r"(?:[^/\\\x00.][^/\\\x00]*|\.[^/\\\x00.][^/\\\x00]*|\.\.[^/\\\x00]+)"
InnerPath = Annotated[str, StringConstraints(max_length=4096, pattern=rf"^{_STEP}(?:/{_STEP})*$")]
"""A path inside a workspace: no `.`, no `..`, no backslash, and no slash at either end."""
InnerFolder = Annotated[
    str, StringConstraints(max_length=4096, pattern=rf"^(?:\.|{_STEP})(?:/+(?:\.|{_STEP}))*/*$")
]
"""A folder inside a workspace, or the workspace itself."""
Text = Annotated[str, StringConstraints(min_length=1, max_length=4096, pattern=r"^[^\x00]*$")]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class WorkspaceFile(_Body):
    """A file of a workspace whose content was sent as a blob."""

    path: InnerPath = Field(examples=["app/build.gradle"])
    sha256: Sha256 = Field(examples=["9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"])
    is_executable: bool = False


class BuildRequest(SecretFields):
    """A wish for a build. Exactly one of `path`, `workspace` and `files` says what is built."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": [source], "properties": {source: {"not": {"type": "null"}}}}
                for source in ("path", "workspace", "files")
            ],
            "examples": [
                {"path": "/home/me/projects/hello", "tasks": ["assembleDebug"]},
                {"workspace": "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8"},
            ],
        }
    )

    path: AbsolutePath | None = Field(
        default=None, description="A folder of the service's host, inside its roots."
    )
    workspace: Sha256 | None = Field(default=None, description="The fingerprint of a workspace sent before.")
    files: list[WorkspaceFile] | None = Field(
        default=None, max_length=100_000, description="Files whose contents were sent as blobs."
    )
    name: Name | None = Field(default=None, description="The project's name; the folder's by default.")
    tasks: list[TaskPath] = Field(default=["assembleDebug"], min_length=1, max_length=50)
    args: list[GradleArgument] = Field(default=[], max_length=100)
    clean: bool = False
    project_dir: InnerFolder = Field(default=".", description="The Gradle root inside the workspace.")
    deadline_s: float = Field(default=3600.0, gt=0, le=30 * 86_400)
    phone: Text | None = Field(default=None, description="The address or serial of the one phone to use.")
    pool: Name = Field(default="default", description="Which phones may take it.")
    route: RouteName | None = Field(
        default=None, description="How this build reaches the prefix; by default as its phone is set."
    )
    needs: dict[NeedName, int | str | list[str]] = Field(
        default={},
        description="What the phone must offer: abi, api_level, jdk, gradle, agp, platforms, free_bytes.",
        examples=[{"jdk": 17, "platforms": ["android-36"]}],
        json_schema_extra={"additionalProperties": False},
    )
    priority: Literal["urgent", "normal", "background"] = "normal"
    force: bool = Field(default=False, description="Build again although this content was built before.")


class RunReply(_Body):
    """One attempt of a build on a phone."""

    id: str
    attempt: int
    phone: str
    host: str
    route: str | None
    state: str
    detail: str | None
    created: datetime
    finished: datetime | None
    log_size_bytes: int | None
    log_sha256: str | None
    stage_s: dict[str, float] = Field(description="Seconds by stage name.")


class ArtifactReply(_Body):
    """A file that the build made; its content is at `/v1/builds/{id}/artifacts/{number}`."""

    number: int
    path: str
    kind: str
    variant: str | None
    size_bytes: int
    sha256: str


class ArtifactList(_Body):
    """What a build made."""

    artifacts: list[ArtifactReply]


class ProblemList(_Body):
    """The root causes that a log shows, first cause first, each as the digest has it."""

    problems: list[dict[str, Any]]


class BuildReply(_Body):
    """A build as it is now."""

    id: str
    owner: str
    project: str
    workspace: str
    tasks: list[str]
    args: list[str]
    state: Literal["queued", "running", "finished"]
    stage: str = Field(description="queue, start, scan, upload, unpack, gradle, collect, fetch or end.")
    reason: str | None = Field(description="Why it waits, or what to do about its end.")
    outcome: Literal["succeeded", "failed", "cancelled", "timed_out", "lost", "refused"] | None
    exit_code: int | None
    cause: str | None
    phone: str | None
    pool: str
    priority: str
    attempt: int
    is_cancel_asked: bool
    secrets: list[str] = Field(default=[], description="Names of the secrets that it was given.")
    created: datetime
    started: datetime | None
    finished: datetime | None
    runs: list[RunReply] = []
    artifacts: list[ArtifactReply] = []


class BuildAccepted(BuildReply):
    """The build that answers a wish; `is_joined` where it was there already."""

    is_joined: bool


class BuildPage(_Body):
    """Some builds, newest first; `next` is the cursor of the following page."""

    builds: list[BuildReply]
    next: str | None


class DigestReply(_Body):
    """What a person or a model should read of a build first."""

    build: str
    text: str
    digest: dict[str, Any]


class TaskReply(_Body):
    """A Gradle task of a run; `duration_s` is null for one that had not ended."""

    path: str
    outcome: str
    duration_s: float | None


class CauseReply(_Body):
    """An exception of a failure's chain; `file` and `line` where Gradle knew the place in a script."""

    type: str | None
    message: str
    file: str | None
    line: int | None


class EventsReply(_Body):
    """What Gradle itself noted of a run; `outcome` is `unknown` where it never told the end.

    Tasks stand in the order in which they ended. Each failure is a chain of causes, outermost first.
    """

    build: str
    gradle: str | None
    outcome: str
    tasks: list[TaskReply]
    failures: list[list[CauseReply]]


class LineReply(_Body):
    """Lines of a log; `first` counts from 0."""

    first: int
    lines: list[str]
    total: int


class SearchReply(_Body):
    """Where a pattern matches: `lines` holds line numbers, counted from 0."""

    lines: list[int]
    hits: int
    total: int


class MissingRequest(_Body):
    """Contents that the caller has."""

    sha256: list[Sha256] = Field(
        max_length=100_000, examples=[["9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"]]
    )


class MissingReply(_Body):
    """Those of them that the service lacks."""

    missing: list[str]


class WorkspaceReply(_Body):
    """A workspace that the service keeps now."""

    workspace: str
    name: str
    files: int
    size_bytes: int
    notes: list[str] = []


class PhoneRequest(_Body):
    """A phone to be known; `address` is `HOST:PORT` or a serial."""

    address: Text = Field(examples=["192.168.1.20:5555"])
    pool: Name | None = "default"
    route: RouteName | None = None


class PhoneReply(_Body):
    """A phone, what it offers, how it is, and who holds it."""

    address: str
    serial: str | None
    host: str
    pool: str | None
    route: str | None
    state: str
    reason: str | None
    build: str | None = Field(description="The build that holds it; hidden where it is another owner's.")
    is_busy: bool
    queue: int = Field(description="How many waiting builds it could take, once it is free and well.")
    resting: str | None = Field(description="Why it gets no build until it is better; null where it is well.")
    contract: dict[str, Any] | None
    health: dict[str, Any] | None = Field(
        description="battery_percent, is_charging, heat_celsius, thermal_status (0 to 6), free_bytes, "
        "free_memory_bytes; what it does not tell is null, and named in `unknown`."
    )
    seen: datetime | None


class PhoneList(_Body):
    """All phones."""

    phones: list[PhoneReply]
