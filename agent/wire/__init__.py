"""Normalize what providers stream, and write what they are asked. Nothing here does I/O."""

from agent.wire.encode import Encoder, encode
from agent.wire.event import CallDelta, ReasoningDelta, StreamEvent, TextDelta, UsageReport
from agent.wire.parser import ResponseParser

__all__ = [
    "CallDelta",
    "Encoder",
    "ReasoningDelta",
    "ResponseParser",
    "StreamEvent",
    "TextDelta",
    "UsageReport",
    "encode",
]
