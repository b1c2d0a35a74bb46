"""Give tool calls the ids under which they go back to a provider."""

import hashlib
import re

from agent.message import Message, ToolCall, ToolResult

_UNFIT = re.compile(r"[^A-Za-z0-9_-]")
_MAX_CHARS = 64
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


class CallIds:
    """The ids of a conversation's calls, message by message: each is used once and fits the provider.

    A call's own id is unique in its message only: `call_0` is made for each call that came without an
    id, and some providers count from zero in every response. What was used earlier, or has characters
    that no provider takes, gets an id made of the message's and the call's place. The beginning of a
    conversation gets the same ids however it goes on, so prompt caches hold.
    """

    def __init__(self, exact_chars: int | None = None) -> None:
        self._exact_chars = exact_chars
        self._used: set[str] = set()
        self._current: dict[str, str] = {}
        self._messages = 0

    def begin(self, message: Message) -> None:
        """Go on to the calls of the next message; the results that follow are theirs."""
        self._messages += 1
        for place, call in enumerate(message.tool_calls):
            fit = self._fit(call.id)
            while fit in self._used:
                fit = self._fit(f"call_{self._messages}_{place}" if fit == self._fit(call.id) else fit + "_")
            self._used.add(fit)
            self._current[call.id] = fit

    def of(self, item: ToolCall | ToolResult) -> str:
        """Give the id of a call of the message begun last, or of a result of such a call."""
        own = item.id if isinstance(item, ToolCall) else item.call_id
        return self._current.get(own) or self._fit(own)

    def _fit(self, call_id: str) -> str:
        exact = self._exact_chars
        if exact is not None:
            is_fit = len(call_id) == exact and call_id.isascii() and call_id.isalnum()
            return call_id if is_fit else _hashed(call_id, exact)
        if len(call_id) > _MAX_CHARS:
            return f"call_{_hashed(call_id, 24)}"
        return _UNFIT.sub("_", call_id)


def _hashed(call_id: str, chars: int) -> str:
    number = int.from_bytes(hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).digest())
    digits = []
    for _ in range(chars):
        number, digit = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return "".join(digits)
