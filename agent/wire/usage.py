"""Token counts, however providers name them."""

from typing import Any

from agent.message import JsonObject, Usage
from agent.wire.scalars import token_count

_INPUT = ("prompt_tokens", "input_tokens", "promptTokens", "inputTokens", "prompt_eval_count")
_OUTPUT = ("completion_tokens", "output_tokens", "completionTokens", "outputTokens", "eval_count")


class Counts:
    """The token counts of one response as they become known.

    Counts are totals and never summed over events: for each kind the last number counts, and null or
    absence erases nothing.
    """

    __slots__ = ("_known", "is_changed")

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self.is_changed = False

    def set(self, kind: str, value: Any) -> None:
        """Take a count of a kind, if it is one."""
        number = token_count(value)
        if number is not None:
            self._known[kind] = number
            self.is_changed = True

    def get(self, kind: str) -> int:
        """Give the count of a kind, zero where it is not known."""
        return self._known.get(kind, 0)

    def is_known(self, *kinds: str) -> bool:
        """Whether any of the kinds was counted."""
        return not self._known.keys().isdisjoint(kinds)

    def take_openai(self, usage: JsonObject) -> None:
        """Take the usage object of either OpenAI dialect; its input includes what was cached.

        Of a count under two names the one that is not zero counts: gateways fill in only theirs.
        """
        for kind, keys, details in (
            ("input", _INPUT, ("prompt_tokens_details", "input_tokens_details")),
            ("output", _OUTPUT, ("completion_tokens_details", "output_tokens_details")),
        ):
            told = [count for key in keys if (count := token_count(usage.get(key))) is not None]
            if told:
                self.set(kind, next(filter(None, told), 0))
            for key in details:
                if isinstance(nested := usage.get(key), dict):
                    self.set("cached", nested.get("cached_tokens"))
                    self.set("reasoning", nested.get("reasoning_tokens"))
        self.set("cached", usage.get("prompt_cache_hit_tokens"))

    def usage(self) -> Usage | None:
        """Give the counts, None where neither side was counted.

        The kinds `cache_read` and `cache_creation` are parts of the prompt that are counted beside the
        input, `tool_prompt` too; `thoughts` are counted beside the output.
        """
        beside_input = ("cache_read", "cache_creation", "tool_prompt")
        if not self.is_known("input", "output", "thoughts", *beside_input):
            return None
        return Usage(
            input_tokens=self.get("input") + sum(map(self.get, beside_input)),
            output_tokens=self.get("output") + self.get("thoughts"),
            cached_input_tokens=self.get("cached") + self.get("cache_read"),
            reasoning_tokens=self.get("reasoning") + self.get("thoughts"),
        )
