"""Decode Anthropic Messages, as Anthropic and those who imitate it stream them.

An event's kind is its `type`, else its `event:` line, else its shape. A delta is what it holds, not
what block it names: text is text under the index of a tool, too. Blocks of tools that the provider
runs itself are kept as they are, to be sent back.
"""

import json
from typing import Any

from agent.message import JsonObject
from agent.wire.assemble import Assembly
from agent.wire.content_blocks import ContentBlocks
from agent.wire.draft import CallDraft, TextDraft
from agent.wire.failure import describe, named_failure, told_failure
from agent.wire.scalars import whole_number

_INPUT_KINDS = {
    "input_tokens": "input",
    "prompt_tokens": "input",
    "cache_creation_input_tokens": "cache_creation",
    "cache_read_input_tokens": "cache_read",
}
_QUIET = frozenset(("ping", "content_block_stop", "message_stop"))


class Decoder:
    """Turn the events of one Messages response into what an assembly takes."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._blocks = ContentBlocks(assembly)
        self._repeat: list[Any] = []
        self._last: JsonObject | None = None
        self._last_delta: JsonObject = {}
        self._last_key = ""
        self._growing: TextDraft | CallDraft | None = None
        self._pieces: list[str] = []

    def decode(self, event: JsonObject) -> None:
        """Take one event.

        A line that differs from the last one in a string only comes as the same object, so what it
        adds goes where that went.
        """
        growing = self._growing
        if event is self._last and growing is not None and growing.is_touched:
            piece = self._last_delta[self._last_key]
            if piece and type(piece) is str:
                self._pieces.append(piece)
            return
        kind, delta = event.get("type"), event.get("delta")
        self._last = None
        if kind == "content_block_delta" and type(delta) is dict:
            self._take_delta(event, delta)
        elif isinstance(kind, str) and kind:
            self._decode_kind(event, kind)
        else:
            self._decode_kind(event, self._assembly.event_name or _kind_by_shape(event))

    def _decode_kind(self, event: JsonObject, kind: str) -> None:
        delta = event.get("delta")
        match kind:
            case "content_block_delta" if isinstance(delta, dict):
                self._take_delta(event, delta)
            case "content_block_start":
                self._blocks.start(event)
            case "content_block_stop":
                self._blocks.stop(event)
            case "message_start":
                message = event.get("message")
                self._take_message(message if isinstance(message, dict) else event)
            case "message_delta":
                self._take_end(event, delta if isinstance(delta, dict) else event)
            case "message":
                self._take_message(event)
            case "message_stop":
                self._assembly.has_end_marker = True
                self._take_end(event, event)
                if isinstance(message := event.get("message"), dict):
                    self._take_message(message)
            case _:
                failure = named_failure(event) or (told_failure(event) if kind not in _QUIET else None)
                if failure is None and kind == "error":
                    failure = describe(event)
                if kind not in _QUIET:
                    self._assembly.suspect(event)
                if failure is not None:
                    self._assembly.fail(failure)
                elif isinstance(event.get("content"), list):
                    self._take_message(event)

    def close(self) -> None:
        """Take what only block starts or a repeated message told, now that the stream is over."""
        self._blocks.settle()
        self._take_repeat()

    def _take_delta(self, event: JsonObject, delta: JsonObject) -> None:
        piece = delta.get("partial_json")
        if piece is not None:
            self._take_json(event, delta, piece)
            return
        text = delta.get("text")
        if type(text) is str:
            draft = self._assembly.text(text) if text else None
            if draft is not None:
                self._note_growth(event, delta, "text", draft, draft.fresh)
        elif isinstance(thinking := delta.get("thinking"), str):
            if thinking:
                self._blocks.think(thinking)
        elif isinstance(signature := delta.get("signature"), str):
            self._blocks.sign(signature)
        elif delta.get("stop_reason"):
            self._take_end(event, delta)

    def _take_json(self, event: JsonObject, delta: JsonObject, piece: Any) -> None:
        piece = piece if type(piece) is str else json.dumps(piece, ensure_ascii=False)
        if not piece:
            return
        block = self._blocks.find(whole_number(event.get("index")))
        if block.call is None:
            block.pieces.append(piece)
            return
        self._assembly.extend(block.call, piece)
        if self._blocks.is_settled(block, event.get("index")):
            self._note_growth(event, delta, "partial_json", block.call, block.call.pieces)

    def _note_growth(
        self,
        event: JsonObject,
        delta: JsonObject,
        key: str,
        growing: TextDraft | CallDraft,
        pieces: list[str],
    ) -> None:
        self._last, self._last_delta, self._last_key = event, delta, key
        self._growing, self._pieces = growing, pieces

    def _take_message(self, message: JsonObject) -> None:
        """Take a whole message: at the start an empty one, later one that repeats what was streamed."""
        if isinstance(content := message.get("content"), list) and content:
            self._repeat = content
        elif isinstance(content, str) and content:
            self._repeat = [{"type": "text", "text": content}]
        self._take_end(message, message)
        if failure := named_failure({"error": message.get("error")}):
            self._assembly.fail(failure)

    def _take_repeat(self) -> None:
        assembly = self._assembly
        has_calls, has_text = bool(assembly.calls), assembly.has_text(is_reasoning=False)
        has_thinking = assembly.has_text(is_reasoning=True)
        for data in self._repeat:
            if not isinstance(data, dict):
                continue
            match data.get("type"):
                case "tool_use" if has_calls:
                    same = [call for call in assembly.calls if call.id and call.id == data.get("id")]
                    if same and isinstance(given := data.get("input"), dict):
                        same[0].whole.append(given)
                        same[0].take_name(data.get("name") if not same[0].name else None)
                    continue
                case "text" if has_text:
                    continue
                case "thinking" | "redacted_thinking" if has_thinking:
                    continue
            self._blocks.open(data).take_input()

    def _take_end(self, event: JsonObject, delta: JsonObject) -> None:
        self._assembly.finish(delta.get("stop_reason") or event.get("stop_reason"))
        for usage in (event.get("usage"), delta.get("usage") if delta is not event else None):
            if isinstance(usage, dict):
                self._take_usage(usage)

    def _take_usage(self, usage: JsonObject) -> None:
        """Take counts that are totals; an input side of nothing but zeros erases nothing."""
        counts = self._assembly.counts
        given = {kind: usage[key] for key, kind in _INPUT_KINDS.items() if usage.get(key) is not None}
        is_zero = not any(given.values())
        for kind, value in given.items():
            if not (is_zero and counts.is_known(kind)):
                counts.set(kind, value)
        for key in ("completion_tokens", "output_tokens"):
            counts.set("output", usage.get(key))


def _kind_by_shape(event: JsonObject) -> str:
    delta = event.get("delta")
    if isinstance(delta, dict):
        return "message_delta" if "stop_reason" in delta else "content_block_delta"
    if "content_block" in event:
        return "content_block_start"
    if isinstance(event.get("message"), dict):
        return "message_start"
    return "content_block_stop" if event.keys() == {"index"} else ""
