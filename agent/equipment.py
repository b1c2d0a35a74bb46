"""What a run works with, and what came of it."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from agent.approval import Gate, Mode
from agent.budget import Spent
from agent.decide import StopReason
from agent.http import Line
from agent.progress import OnProgress
from agent.retry import RetryPolicy
from agent.tools.build import Builder
from agent.tools.git import Author
from agent.tools.tool import AnyTool
from agent.transcript import Transcript


class Verify(StrEnum):
    """When a final answer is checked by a build of the present state."""

    CHANGED = "changed"
    ALWAYS = "always"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Equipment:
    """What a run works with; all of it is opened and closed by the caller.

    `tools` come on top of those over the workspace and the builder. `author` signs commits.
    `is_interrupted` is asked between steps; once true the run is put down so that it can be resumed.
    """

    line: Line
    builder: Builder
    transcript: Transcript
    on_progress: OnProgress
    gate: Gate = field(default_factory=lambda: Gate(Mode.YES))
    tools: tuple[AnyTool, ...] = ()
    author: Author = field(default_factory=Author)
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    is_interrupted: Callable[[], bool] = lambda: False
    clock: Callable[[], float] = time.monotonic


@dataclass(frozen=True, slots=True)
class RunResult:
    """What came of a run. `text` is the model's last word, `detail` says why the run ended."""

    run_id: str
    reason: StopReason
    detail: str
    text: str
    spent: Spent
