"""Recorded bodies and ways to read them, for the tests of the wire."""

import base64
import json
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.message import Dialect, Message
from agent.wire import ResponseParser, StreamEvent

CASES = Path(__file__).parents[2] / "cases" / "stream"


@dataclass(frozen=True)
class Case:
    """One recorded response and the message that it means."""

    id: str
    dialect: Dialect
    body: bytes
    expect: dict[str, Any]
    codes: frozenset[str]


def load_cases() -> list[Case]:
    return [load(path) for path in sorted(CASES.glob("*.json"))]


def load(path: Path) -> Case:
    raw = json.loads(path.read_text())
    body = b"".join(
        chunk.encode() if isinstance(chunk, str) else base64.b64decode(chunk["b64"])
        for chunk in raw["chunks"]
    )
    expect = dict(raw["expect"])
    codes = frozenset(expect.pop("diagnostics_include"))
    return Case(raw["id"], Dialect(raw["dialect"]), body, expect, codes)


def read(dialect: Dialect, pieces: Iterable[bytes]) -> Message:
    parser = ResponseParser(dialect)
    for piece in pieces:
        parser.feed(piece)
    return parser.close()


def watch(dialect: Dialect, pieces: Iterable[bytes]) -> list[StreamEvent]:
    parser = ResponseParser(dialect)
    events = [event for piece in pieces for event in parser.feed(piece)]
    parser.close()
    return events


def normalized(message: Message) -> dict[str, Any]:
    usage = message.usage
    return {
        "text": message.text,
        "reasoning": message.reasoning,
        "tool_calls": [
            {"id": call.id, "name": call.name, "arguments": call.arguments} for call in message.tool_calls
        ],
        "finish_reason": message.finish_reason and message.finish_reason.value,
        "usage": usage and {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens},
    }


def codes(message: Message) -> set[str]:
    return {found.code for found in message.diagnostics}


def bytewise(body: bytes) -> list[bytes]:
    return [body[at : at + 1] for at in range(len(body))]


def seeded_cuts(case_id: str, body: bytes, count: int) -> Iterator[list[bytes]]:
    rng = random.Random(case_id)
    for _ in range(count):
        places = sorted(rng.randint(0, len(body)) for _ in range(rng.randint(1, 12)))
        yield [body[a:b] for a, b in zip([0, *places], [*places, len(body)], strict=True)]
