"""How much of one response is read before it is ended.

The longest honest answers known are files of a few megabytes written through one call; the Responses
dialect sends such arguments up to four times over, each time escaped once more. Everything above is a
broken or hostile server. What exceeds a limit gives the diagnostic `limit_exceeded`.
"""

MAX_BODY_BYTES = 256 * 1024 * 1024
"""The whole body of one response; the message ends there as an error.

Arguments of the greatest length allowed, in fragments of 25 characters, each with an envelope of some 230
bytes around it, make 170 MiB.
"""

MAX_LINE_BYTES = 32 * 1024 * 1024
"""One line of the body, or one JSON value spread over several lines; the message ends there as an error."""

MAX_EVENT_LINES = 100_000
"""Lines over which one JSON value is spread; the message ends there as an error."""

MAX_ARGUMENT_CHARS = 16 * 1024 * 1024
"""The arguments of one tool call, all fragments together; a longer call is refused."""

MAX_CALLS = 512
"""Tool calls in one message; the message ends there as an error. Providers take at most 512 tools."""

MAX_PARTS = 10_000
"""Texts, pieces of thinking and blocks of one message; the message ends there as an error."""

MAX_NESTING = 200
"""How deep JSON may nest; `pydantic_core.from_json` refuses more."""

MAX_DIAGNOSTICS = 100
"""Diagnostics that one message keeps; a stream of nothing but faults adds no more."""


class LimitExceeded(Exception):
    """A limit was passed while an event was decoded; the parser ends the message and raises nothing."""
