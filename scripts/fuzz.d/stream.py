"""Fuzz the stream parsers: mutated bodies of the cases, and what must hold for every body.

    .venv/bin/python scripts/fuzz.d/stream.py [--seconds 60] [--seed N] [--dialect D]

The seconds are shared by the dialects. Every body is read twice, whole and in random pieces. It must
raise nothing, give the same message both times, ids that are unique and not empty, a reason for each
call that must not run, text that can be encoded, and requests in every dialect that can be. Where
atheris is installed, coverage leads the second half of the time. A failing body is written to a file,
with the seed that made it, and the exit code is above 0.
"""

import argparse
import base64
import json
import random
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from guided import coverage

with coverage.watched("agent.wire"):
    from agent.message import Dialect, Message, Request, ToolResult, UserMessage
    from agent.wire import ResponseParser, encode

CASES = ROOT / "tests" / "cases" / "stream"
MAX_BODY_BYTES = 20_000
SPICES = [
    *(
        mark.encode()
        for mark in ("\n", "\n\n", "\r", "\r\n", "\0", "\ufeff", "data:", "data: [DONE]\n\n", ": ping\n\n")
    ),
    *(
        mark.encode()
        for mark in ("event: error\n", "{", "}", "[", "]", '"', "\\", ",", "null", '""', "{}", '"type":')
    ),
    *(
        mark.encode()
        for mark in ('"index":0', '"index":null', '"id":""', '"name":"f"', '"arguments":"{}"', "-1")
    ),
    *(
        mark.encode()
        for mark in ('"finish_reason":"stop"', "<think>", "</think>", "<tool_call>", "1e999", "NaN")
    ),
    *(b"\\ud83d", b"\\ude80", b"\xed\xa0\xbd", b"\xff", b'{"error":"x"}'),
]


def load(dialect: str) -> list[bytes]:
    """Give the bodies of a dialect's cases."""
    bodies = []
    for path in sorted(CASES.glob("*.json")):
        case = json.loads(path.read_text())
        if case["dialect"] == dialect:
            pieces = (c.encode("utf-8", "surrogatepass") if isinstance(c, str) else base64.b64decode(c["b64"])
                      for c in case["chunks"])  # fmt: skip
            bodies.append(b"".join(pieces)[:MAX_BODY_BYTES])
    return bodies


def mutate(rng: random.Random, bodies: list[bytes]) -> bytes:
    """Make a new body out of the known ones: cut, doubled, spliced, spiced, lines shuffled."""
    body = rng.choice(bodies)
    for _ in range(rng.randint(1, 6)):
        start = rng.randint(0, len(body))
        end = min(len(body), start + int(rng.expovariate(1 / 40)))
        match rng.randrange(8):
            case 0:
                body = body[:start] + body[end:]
            case 1:
                body = body[:end] + body[start:]
            case 2:
                other = rng.choice(bodies)
                body = body[:start] + other[rng.randint(0, len(other)) :]
            case 3:
                body = body[:start] + bytes([rng.randrange(256)]) + body[start + 1 :]
            case 4 | 5:
                body = body[:start] + rng.choice(SPICES) + body[end if rng.random() < 0.5 else start :]
            case 6:
                lines = body.split(b"\n")
                at, to = rng.randrange(len(lines)), rng.randrange(len(lines))
                lines.insert(to, lines.pop(at) if rng.random() < 0.5 else lines[at])
                body = b"\n".join(lines)
            case 7:
                body = body[:start]
    return body[:MAX_BODY_BYTES]


def read(dialect: Dialect, pieces: list[bytes]) -> Message:
    """Give the message of a body."""
    parser = ResponseParser(dialect)
    for piece in pieces:
        parser.feed(piece)
    return parser.close()


def cut(rng: random.Random, body: bytes) -> list[bytes]:
    """Cut a body at random places, or into single bytes."""
    if rng.random() < 0.1:
        return [body[at : at + 1] for at in range(len(body))]
    places = sorted(rng.randint(0, len(body)) for _ in range(rng.randint(1, 8)))
    return [body[a:b] for a, b in zip([0, *places], [*places, len(body)], strict=True)]


def check(rng: random.Random, dialect: Dialect, body: bytes) -> None:
    """Raise where something does not hold that must hold for every body."""
    message = read(dialect, [body])
    assert message == read(dialect, cut(rng, body)), "the cuts change the message"
    ids = [call.id for call in message.tool_calls]
    assert "" not in ids
    assert len(set(ids)) == len(ids), "ids are not unique"
    for call in message.tool_calls:
        assert call.is_executable or "Send the call again" in str(call.fault) or "Split" in str(call.fault)
        assert call.is_executable or message.diagnostics, "a refused call without a diagnostic"
    json.dumps([message.text, message.reasoning, [call.arguments for call in message.tool_calls]],
               ensure_ascii=False, allow_nan=False).encode()  # fmt: skip
    assert all(0 <= found.offset_bytes <= len(body) for found in message.diagnostics), (
        "offsets out of the body"
    )
    results = tuple(ToolResult(call.id, call.name, "x") for call in message.tool_calls)
    request = Request("m", "s", (UserMessage("go"), message, *results, message, *results))
    for other in Dialect:
        json.dumps(encode(other, request), ensure_ascii=False, allow_nan=False).encode()


def fuzz(dialect: Dialect, seconds: float, seed: int) -> int:
    """Check mutated bodies until the time is over; give how many there were."""
    bodies, count, end = load(dialect), 0, time.monotonic() + seconds
    while time.monotonic() < end:
        rng = random.Random(f"{seed} {dialect} {count}")
        body = mutate(rng, bodies)
        try:
            check(rng, dialect, body)
        except Exception as fault:
            path = Path(f"fuzz-{dialect}-{seed}-{count}.body")
            path.write_bytes(body)
            print(f"{dialect}: {type(fault).__name__}: {fault}; the body is in {path}")
            raise
        count += 1
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--dialect", choices=[dialect.value for dialect in Dialect], action="append")
    args = parser.parse_args()
    dialects = [Dialect(name) for name in args.dialect or Dialect]
    for dialect in dialects:
        count = fuzz(dialect, coverage.share(args.seconds) / len(dialects), args.seed)
        print(f"{dialect}: {count} bodies, seed {args.seed}: nothing found")

    def search(body: bytes) -> None:
        if body:
            check(random.Random(args.seed), dialects[body[0] % len(dialects)], body[1:])

    starts = (bytes([number]) + body for number, dialect in enumerate(dialects) for body in load(dialect))
    sys.exit(coverage.search(search, starts, coverage.share(args.seconds), args.seed))


if __name__ == "__main__":
    main()
