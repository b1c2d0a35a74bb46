"""What the MCP tools answer, as models: clients get them as structured content."""

from typing import Any, Literal

from pydantic import BaseModel, Field


class BuildStatus(BaseModel):
    """A build as a tool answers it; `digest` is there once it has ended."""

    build_id: str
    state: Literal["queued", "running", "finished"]
    stage: str
    outcome: str | None = None
    seconds: float | None = None
    reason: str | None = None
    digest: str | None = None
    artifacts: list[str] = []
    is_from_earlier: bool = False
    next_step: str = Field(description="What to do now.")


class LogPart(BaseModel):
    """Lines of a log; `first_line` counts from one."""

    first_line: int
    lines: list[str]
    total_lines: int


class LogMatches(BaseModel):
    """Where a pattern stands in a log; lines count from one."""

    places: list[LogPart]
    hits: int
    total_lines: int


class Phones(BaseModel):
    """The phones that could build."""

    phones: list[dict[str, Any]]


class Inspection(BaseModel):
    """What an artifact holds."""

    path: str
    facts: dict[str, Any]


class AgentQuestion(BaseModel):
    """A call that an agent wants to make and a person has to allow; long arguments are cut."""

    question_id: str
    tool: str
    summary: str
    arguments: str


class AgentRunStatus(BaseModel):
    """A run of the service's agent as a tool answers it; `reason` is there once it has stopped."""

    run_id: str
    state: Literal["running", "asking", "interrupted", "stopped"]
    doing: str | None = None
    question: AgentQuestion | None = None
    reason: str | None = None
    detail: str | None = None
    text: str | None = None
    spent: dict[str, Any] | None = None
    next_step: str = Field(description="What to do now.")
