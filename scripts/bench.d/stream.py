"""Read model streams: CPU from bytes to message against the floor, growth and memory, peers beside it.

    scripts/bench stream [--rounds 9] [--piece 16384]

The floor splits the body into lines and reads each payload with `orjson`, keeping nothing. Two
workloads: `chat`, 20,000 deltas of text and 200 fragments of four calls; `write`, one call that
writes a file of 100 kB in 4,000 fragments. Each reader runs in a process of its own, in turn with the
floor, and its text and calls are compared with what was sent. Ratios are medians over the rounds.
The peers are measured where they are installed: pip install openai anthropic httpx-sse. The exit code
is 1 where our reader takes more than twice the floor, grows faster than its input or keeps too much.
"""

import argparse
import gc
import json
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))

URL = "http://127.0.0.1:9/v1"
TOOL = "write_file"
BAR = 2.0
SIZES = (100_000, 1_000_000, 10_000_000)
GROWTH_BAR = 1.6
"""How much dearer a byte may be in arguments of 10 MB than in those of 100 kB."""
MEMORY_BAR = 6.0
"""How many bytes may be held for each byte of a body with arguments of 10 MB, the body itself among them."""


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


def floor(parts: list[bytes]) -> None:
    """Split lines and read each payload: the least that any reader has to do."""
    import orjson

    rest = b""
    for part in parts:
        lines = (rest + part).split(b"\n")
        rest = lines.pop()
        for line in lines:
            if line.startswith(b"data:") and line != b"data: [DONE]":
                orjson.loads(line[5:])


# Readers: each gives (text, calls)

Read = Callable[[list[bytes]], tuple[str, list[tuple[str, str, Any]]]]


def ours(dialect: str) -> Read:
    from agent.message import Dialect
    from agent.wire import ResponseParser

    def read(parts: list[bytes]) -> tuple[str, list[tuple[str, str, Any]]]:
        parser = ResponseParser(Dialect(dialect))
        for part in parts:
            parser.feed(part)
        message = parser.close()
        return message.text, [(call.id, call.name, call.arguments) for call in message.tool_calls]

    return read


def http_client(parts: list[bytes], module: str) -> Any:
    """Give an HTTP client of that module whose every answer is `parts`."""
    http = __import__(module)

    class Body(http.SyncByteStream):  # type: ignore[name-defined, misc]
        def __iter__(self) -> Any:
            yield from parts

    def answer(_request: Any) -> Any:
        return http.Response(200, headers={"content-type": "text/event-stream"}, stream=Body())

    return http.Client(transport=http.MockTransport(answer))


def client_module(library: str) -> str:
    """Name the HTTP module that a library's client takes."""
    base = __import__(library)._base_client
    return "httpx2" if hasattr(base, "httpx2") else "httpx"


class Joined:
    """Puts chat chunks together as their users do, where a library gives chunks only."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.calls: dict[int, list[Any]] = {}

    def call(self, index: int, call_id: str | None, name: str | None, piece: str | None) -> None:
        call = self.calls.setdefault(index, ["", "", []])
        call[0], call[1] = call_id or call[0], name or call[1]
        call[2].append(piece or "")

    def result(self) -> tuple[str, list[tuple[str, str, Any]]]:
        calls = [
            (call_id, name, json.loads("".join(pieces))) for call_id, name, pieces in self.calls.values()
        ]
        return "".join(self.text), calls


def httpx_sse_reader() -> Read:
    import httpx_sse

    def read(parts: list[bytes]) -> tuple[str, list[tuple[str, str, Any]]]:
        joined = Joined()
        with httpx_sse.connect_sse(http_client(parts, "httpx"), "POST", URL) as source:
            for event in source.iter_sse():
                for choice in json.loads(event.data)["choices"] if event.data != "[DONE]" else ():
                    joined.text.append(choice["delta"].get("content") or "")
                    for call in choice["delta"].get("tool_calls") or ():
                        function = call["function"]
                        joined.call(
                            call["index"], call.get("id"), function.get("name"), function["arguments"]
                        )
        return joined.result()

    return read


def openai_reader(style: str) -> Read:
    import openai

    module = client_module("openai")
    ask: Any = {"model": "bench", "messages": [{"role": "user", "content": "go"}]}

    def chunks(parts: list[bytes]) -> tuple[str, list[tuple[str, str, Any]]]:
        joined = Joined()
        client = openai.OpenAI(api_key="k", base_url=URL, http_client=http_client(parts, module))
        for chunk in client.chat.completions.create(**ask, stream=True):
            for choice in chunk.choices:
                joined.text.append(choice.delta.content or "")
                for call in choice.delta.tool_calls or ():
                    joined.call(call.index, call.id, call.function.name, call.function.arguments)
        return joined.result()

    def stream(parts: list[bytes]) -> tuple[str, list[tuple[str, str, Any]]]:
        client = openai.OpenAI(api_key="k", base_url=URL, http_client=http_client(parts, module))
        with client.chat.completions.stream(**ask) as answer:
            message = answer.get_final_completion().choices[0].message
        calls = [(c.id, c.function.name, json.loads(c.function.arguments)) for c in message.tool_calls or ()]
        return message.content, calls

    return chunks if style == "chunks" else stream


def anthropic_reader(style: str) -> Read:
    import anthropic

    module = client_module("anthropic")
    ask: Any = {"model": "bench", "messages": [{"role": "user", "content": "go"}], "max_tokens": 9}

    def events(parts: list[bytes]) -> tuple[str, list[tuple[str, str, Any]]]:
        joined = Joined()
        client = anthropic.Anthropic(api_key="k", base_url=URL, http_client=http_client(parts, module))
        for event in client.messages.create(**ask, stream=True):
            if event.type == "content_block_start" and event.content_block.type == "tool_use":
                joined.call(event.index, event.content_block.id, event.content_block.name, "")
            elif event.type == "content_block_delta" and event.delta.type == "text_delta":
                joined.text.append(event.delta.text)
            elif event.type == "content_block_delta":
                joined.call(event.index, None, None, event.delta.partial_json)
        return joined.result()

    def stream(parts: list[bytes]) -> tuple[str, list[tuple[str, str, Any]]]:
        client = anthropic.Anthropic(api_key="k", base_url=URL, http_client=http_client(parts, module))
        with client.messages.stream(**ask) as answer:
            blocks = answer.get_final_message().content
        text = "".join(block.text for block in blocks if block.type == "text")
        return text, [(block.id, block.name, block.input) for block in blocks if block.type == "tool_use"]

    return events if style == "events" else stream


READERS: dict[str, tuple[Callable[[], Read], Callable[..., Response]]] = {
    "pocketbuild openai-chat": (lambda: ours("openai-chat"), openai_body),
    "pocketbuild anthropic": (lambda: ours("anthropic"), anthropic_body),
    "httpx-sse + json": (httpx_sse_reader, openai_body),
    "openai create(stream=True)": (lambda: openai_reader("chunks"), openai_body),
    "openai chat.stream()": (lambda: openai_reader("stream"), openai_body),
    "anthropic create(stream=True)": (lambda: anthropic_reader("events"), anthropic_body),
    "anthropic messages.stream()": (lambda: anthropic_reader("stream"), anthropic_body),
}


# Measuring


def cpu_s(work: Callable[[], object]) -> float:
    gc.collect()
    start = time.process_time()
    work()
    return time.process_time() - start


@cache
def parts_of(body: bytes, piece: int) -> list[bytes]:
    return [body[at : at + piece] for at in range(0, len(body), piece)]


def compare(name: str, workload: str, rounds: int, piece: int) -> dict[str, Any]:
    """Measure one reader in turn with the floor, in this process."""
    make_reader, make_body = READERS[name]
    response, read = make_body(workload), make_reader()
    parts = parts_of(response.body, piece)
    text, calls = read(parts)
    is_right = text == response.text and calls == response.calls
    floor(parts)
    pairs = [(cpu_s(lambda: floor(parts)), cpu_s(lambda: read(parts))) for _ in range(rounds)]
    return {
        "ratio": statistics.median(mine / base for base, mine in pairs),
        "us_per_event": statistics.median(mine for _, mine in pairs) / response.events * 1e6,
        "is_right": is_right,
    }


def grow(size: int, rounds: int, piece: int) -> dict[str, Any]:
    """Measure arguments of one size: CPU for each byte, and the most memory held."""
    response = openai_body("write", size=size, fragments=size // 25)
    parts, read = parts_of(response.body, piece), ours("openai-chat")
    text, calls = read(parts)
    is_right = (text, calls) == (response.text, response.calls)
    taken = [cpu_s(lambda: read(parts)) for _ in range(rounds)]
    return {"ns_per_byte": min(taken) / len(response.body) * 1e9, "is_right": is_right}


def hold(size: int, piece: int) -> dict[str, Any]:
    """Measure what the process holds at most above what it holds with the body alone."""
    body = openai_body("write", size=size, fragments=size // 25).body
    parts, read = parts_of(body, piece), ours("openai-chat")
    read(parts_of(openai_body("write", size=10_000, fragments=40).body, piece))
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    read(parts)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"bytes_per_byte": 1 + (after - before) * 1024 / len(body)}


def in_child(**task: Any) -> dict[str, Any] | str:
    """Run one measurement in a fresh process; give its result, or why there is none."""
    command = [sys.executable, __file__, "--child", json.dumps(task)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr.strip().splitlines()[-1][:100] if done.stderr.strip() else "it died"
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def run_child(task: dict[str, Any]) -> None:
    kind = task.pop("kind")
    print(json.dumps({"compare": compare, "grow": grow, "hold": hold}[kind](**task)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--piece", type=int, default=16_384, help="bytes in one read")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        run_child(json.loads(args.child))
        return
    failed = False
    for workload in ("chat", "write"):
        print(f"\n{workload}: CPU time in floors, {args.rounds} rounds, reads of {args.piece} bytes")
        for name in READERS:
            row = in_child(kind="compare", name=name, workload=workload, rounds=args.rounds, piece=args.piece)
            if isinstance(row, str):
                print(f"  {name:<32} not measured: {row}")
                failed |= name.startswith("pocketbuild")
                continue
            print(f"  {name:<32}{row['ratio']:>7.2f}   {row['us_per_event']:>7.1f} µs an event"
                  + ("" if row["is_right"] else "   WRONG RESULT"), flush=True)  # fmt: skip
            failed |= name.startswith("pocketbuild") and not (row["is_right"] and row["ratio"] <= BAR)
    print("\nlength of arguments in fragments of 25 characters: CPU time for each byte of the body")
    costs = []
    for size in SIZES:
        row = in_child(kind="grow", size=size, rounds=3, piece=args.piece)
        assert isinstance(row, dict), row
        costs.append(row["ns_per_byte"])
        failed |= not row["is_right"]
        print(f"  {size:>10,} characters {row['ns_per_byte']:>7.1f} ns", flush=True)
    held = in_child(kind="hold", size=SIZES[-1], piece=args.piece)
    assert isinstance(held, dict), held
    print(f"  at most {held['bytes_per_byte']:.1f} bytes held for each byte of the body, the body among them")
    failed |= costs[-1] > costs[0] * GROWTH_BAR or held["bytes_per_byte"] > MEMORY_BAR
    print(f"\nbar: at most {BAR} floors, growth and memory linear: {'missed' if failed else 'held'}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
