"""Notice calls that repeat themselves and builds that get nowhere."""

from dataclasses import dataclass, field

from pydantic_core import to_json

from agent.message import JsonObject, ToolCall

_NOTICE = "\n[the same call gave this same result before, and nothing has changed since]"
_REFUSAL = (
    "not run: this call has given the same result {count} times and nothing has changed since. "
    "Use what you know already, change something, or say what keeps you from going on."
)


@dataclass(slots=True)
class RepeatGuard:
    """Remembers what each call gave, as long as nothing changes.

    The second time that an identical call gives an identical result, a notice is added to it; after
    `allowed` times the call is refused. A change of the workspace makes every call worth a new try.
    `refused_in_a_row` counts refusals since the last call that was not refused.
    """

    allowed: int = 2
    refused_in_a_row: int = 0
    _seen: dict[str, tuple[int, int]] = field(default_factory=dict)

    def refusal(self, call: ToolCall) -> str | None:
        """Say why this call must not run again, None where it may."""
        _, count = self._seen.get(_key(call), (0, 0))
        if count < self.allowed:
            self.refused_in_a_row = 0
            return None
        self.refused_in_a_row += 1
        return _REFUSAL.format(count=count)

    def note(self, call: ToolCall, content: str) -> str:
        """Remember what a call gave, and give the content with a notice where it is a repetition."""
        key, result = _key(call), hash(content)
        before, count = self._seen.get(key, (0, 0))
        count = count + 1 if before == result else 1
        self._seen[key] = (result, count)
        return content + _NOTICE if count > 1 else content

    def changed(self) -> None:
        """Forget everything: the workspace is no longer what the calls saw."""
        self._seen.clear()


def _key(call: ToolCall) -> str:
    arguments = to_json(dict(sorted(call.arguments.items())), inf_nan_mode="strings")
    return call.name + "\0" + arguments.decode()


@dataclass(slots=True)
class BuildTrend:
    """Whether builds of different states get anywhere, measured on the causes of their failure.

    After `noticed_after` failed builds in a row with the same causes the model is told; after
    `stopped_after` the run stops.
    """

    noticed_after: int = 3
    stopped_after: int = 5
    alike: int = 0
    _causes: frozenset[str] = frozenset()
    _last_fingerprint: str = ""

    def note(self, fingerprint: str, is_green: bool, digest: JsonObject) -> None:
        """Take in how a build ended. The same state built again tells nothing new."""
        if is_green:
            self.alike, self._causes, self._last_fingerprint = 0, frozenset(), fingerprint
            return
        if fingerprint == self._last_fingerprint:
            return
        causes = causes_of(digest)
        self.alike = self.alike + 1 if causes and causes == self._causes else 1
        self._causes, self._last_fingerprint = causes, fingerprint

    def to_memory(self) -> JsonObject:
        """Give what a later process needs to go on."""
        return {"alike": self.alike, "causes": sorted(self._causes), "fingerprint": self._last_fingerprint}

    @classmethod
    def from_memory(cls, memory: JsonObject) -> "BuildTrend":
        """Give the trend that an earlier process had seen."""
        return cls(
            alike=memory["alike"],
            _causes=frozenset(memory["causes"]),
            _last_fingerprint=memory["fingerprint"],
        )

    @property
    def is_stuck(self) -> bool:
        """Whether the run should stop."""
        return self.alike >= self.stopped_after

    @property
    def notice(self) -> str | None:
        """What to tell the model with the digest, None while builds get somewhere."""
        if self.alike < self.noticed_after:
            return None
        return (
            f"[{self.alike} builds in a row failed for the same causes, so the changes between them did "
            "not touch the cause. Look at the cause anew before the next change.]"
        )


def causes_of(digest: JsonObject) -> frozenset[str]:
    """Give what went wrong as comparable strings, which do not move with the lines of an edit.

    Where no cause was made out, the kind of failure and the failed tasks stand for it.
    """
    causes = digest.get("causes")
    listed = causes if isinstance(causes, list) else []
    named = frozenset(str(cause["identity"]) for cause in listed if isinstance(cause, dict))
    if named or not digest.get("failed_tasks"):
        return named
    return frozenset(f"{digest.get('kind')}|{task}" for task in digest["failed_tasks"])
