"""Recorded-like bodies of two dialects, and what a right reader makes of each."""

import json
import random
from dataclasses import dataclass
from typing import Any

TOOL = "write_file"


@dataclass(frozen=True)
class Response:
    """A body, and what a right reader makes of it."""

    body: bytes
    events: int
    text: str
    calls: list[tuple[str, str, dict[str, Any]]]


def said(
    workload: str, size: int = 100_000, fragments: int = 4_000
) -> tuple[list[str], list[dict[str, Any]], int]:
    """Give the text deltas, the calls' arguments, and into how many fragments each is cut."""
    rng = random.Random(workload)
    if workload == "chat":
        words = [
            "the ",
            "task ",
            "failed ",
            "because ",
            "`R.string.app_name` ",
            "é ",
            "找不到 ",
            "\n",
            "is missing. ",
        ]
        tasks = [f":app:compile{n}Kotlin" for n in range(90)]
        return [rng.choice(words) for _ in range(20_000)], [{"tasks": tasks, "run": n} for n in range(4)], 50
    line = '    val label = "größe {}"\n'
    source = "".join(line.format(n) for n in range(size // len(line)))
    return ["I write the file."], [{"path": "app/src/main/kotlin/Main.kt", "content": source}], fragments


def cut(text: str, pieces: int) -> list[str]:
    size = -(-len(text) // pieces)
    return [text[at : at + size] for at in range(0, len(text), size)]


def openai_body(workload: str, **how: int) -> Response:
    texts, calls, count = said(workload, **how)
    head = {"id": "chatcmpl-0", "object": "chat.completion.chunk", "created": 1_764_000_000, "model": "bench"}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**head, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]}

    events = [chunk({"role": "assistant", "content": ""}), *(chunk({"content": text}) for text in texts)]
    for n, call in enumerate(calls):
        function = {"name": TOOL, "arguments": ""}
        events.append(
            chunk({"tool_calls": [{"index": n, "id": f"id_{n}", "type": "function", "function": function}]})
        )
        events += [
            chunk({"tool_calls": [{"index": n, "function": {"arguments": piece}}]})
            for piece in cut(json.dumps(call), count)
        ]
    events.append(chunk({}, "tool_calls"))
    events.append(
        {**head, "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}}
    )
    lines = [f"data: {json.dumps(e, ensure_ascii=False, separators=(',', ':'))}\n\n" for e in events]
    return _response("".join(lines) + "data: [DONE]\n\n", len(lines), texts, calls)


def anthropic_body(workload: str, **how: int) -> Response:
    texts, calls, count = said(workload, **how)
    usage = {"input_tokens": 9, "output_tokens": 1}
    message = {"id": "msg_0", "type": "message", "role": "assistant", "model": "bench", "content": [],
               "stop_reason": None, "stop_sequence": None, "usage": usage}  # fmt: skip

    def delta(index: int, **what: str) -> dict[str, Any]:
        return {"type": "content_block_delta", "index": index, "delta": what}

    def start(index: int, block: dict[str, Any]) -> dict[str, Any]:
        return {"type": "content_block_start", "index": index, "content_block": block}

    events = [{"type": "message_start", "message": message}, start(0, {"type": "text", "text": ""})]
    events += [delta(0, type="text_delta", text=text) for text in texts]
    events.append({"type": "content_block_stop", "index": 0})
    for n, call in enumerate(calls, start=1):
        events.append(start(n, {"type": "tool_use", "id": f"id_{n - 1}", "name": TOOL, "input": {}}))
        pieces = cut(json.dumps(call), count)
        events += [delta(n, type="input_json_delta", partial_json=piece) for piece in pieces]
        events.append({"type": "content_block_stop", "index": n})
    ending = {"stop_reason": "tool_use", "stop_sequence": None}
    events.append({"type": "message_delta", "delta": ending, "usage": {"output_tokens": 9}})
    events.append({"type": "message_stop"})
    lines = [
        f"event: {e['type']}\ndata: {json.dumps(e, ensure_ascii=False, separators=(',', ':'))}\n\n"
        for e in events
    ]
    return _response("".join(lines), len(lines), texts, calls)


def _response(body: str, events: int, texts: list[str], calls: list[dict[str, Any]]) -> Response:
    return Response(
        body.encode(), events, "".join(texts), [(f"id_{n}", TOOL, c) for n, c in enumerate(calls)]
    )
