"""Decode Anthropic Messages, as Anthropic and those who imitate it stream them.

An event's kind is its `type`, else its `event:` line, else its shape. Blocks are told apart by their
index where it tells; a delta is what it holds, not what block it names: text is text under the index
of a tool, too. Blocks of tools that the provider runs itself are kept as they are, to be sent back.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from agent.message import JsonObject
from agent.wire.arguments import read_arguments
from agent.wire.assemble import Assembly
from agent.wire.draft import CallDraft, TextDraft
from agent.wire.failure import named_failure, told_failure
from agent.wire.limits import MAX_PARTS, LimitExceeded
from agent.wire.scalars import identifier, whole_number

_INPUT_KINDS = {
    "input_tokens": "input",
    "prompt_tokens": "input",
    "cache_creation_input_tokens": "cache_creation",
    "cache_read_input_tokens": "cache_read",
}
_QUIET = frozenset(("ping", "content_block_stop", "message_stop"))


@dataclass(slots=True, eq=False)
class _Block:
    """A content block that was opened: a call, or something else with its raw content."""

    data: JsonObject
    call: CallDraft | None = None
    is_open: bool = True
    pieces: list[str] = field(default_factory=list)

    @property
    def takes_json(self) -> bool:
        """Whether fragments of JSON may belong to it."""
        return self.call is not None or "input" in self.data


class Decoder:
    """Turn the events of one Messages response into what an assembly takes."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._blocks: dict[int, _Block] = {}
        self._calls: dict[int, CallDraft] = {}
        self._order: list[_Block] = []
        self._thinking: TextDraft | None = None
        self._repeat: list[Any] = []
        self._has_told_missing_index = False

    def decode(self, event: JsonObject) -> None:
        """Take one event."""
        kind, delta = event.get("type"), event.get("delta")
        if kind == "content_block_delta" and type(delta) is dict:
            text, piece = delta.get("text"), delta.get("partial_json")
            if type(text) is str and text and piece is None:
                self._assembly.text(text)
                return
            index = event.get("index")
            call = self._calls.get(index) if type(index) is int else None
            if type(piece) is str and piece and call is not None and call.is_touched:
                call.pieces.append(piece)
            else:
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
                self._start(event)
            case "content_block_stop":
                self._stop(event)
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
                    failure = told_failure({"detail": event})
                if failure is not None:
                    self._assembly.fail(failure)
                elif isinstance(event.get("content"), list):
                    self._take_message(event)

    def close(self) -> None:
        """Take what only block starts or a repeated message told, now that the stream is over."""
        for block in self._order:
            given = block.data.get("input")
            if block.call is None:
                if block.pieces and isinstance(found := read_arguments(block.pieces), dict):
                    block.data["input"] = found
            elif given and (block.call.is_blank or block.call.is_placeholder):
                block.call.whole.append(given if isinstance(given, dict | str) else json.dumps(given))
        self._take_repeat()

    def _take_delta(self, event: JsonObject, delta: JsonObject) -> None:
        piece = delta.get("partial_json")
        if piece is not None:
            self._take_json(event, piece if type(piece) is str else json.dumps(piece, ensure_ascii=False))
            return
        text = delta.get("text")
        if type(text) is str:
            if text:
                self._assembly.text(text)
        elif isinstance(thinking := delta.get("thinking"), str):
            if thinking:
                if self._thinking is None:
                    self._sign("")
                self._assembly.reasoning(thinking)
        elif isinstance(signature := delta.get("signature"), str):
            self._sign(signature)
        elif delta.get("stop_reason"):
            self._take_end(event, delta)

    def _take_json(self, event: JsonObject, piece: str) -> None:
        if not piece:
            return
        block = self._find_block(whole_number(event.get("index")))
        if block.call is not None:
            self._assembly.extend(block.call, piece)
        else:
            block.pieces.append(piece)

    def _find_block(self, index: int | None) -> _Block:
        """Find the block of a JSON fragment; its index may be missing, unknown or that of a text."""
        known = self._blocks.get(index) if index is not None else None
        if known is not None and known.takes_json:
            return known
        last = next((block for block in reversed(self._order) if block.takes_json), None)
        if index is None:
            self._tell_missing_index()
            if last is not None and (last.is_open or last is self._order[-1]):
                return last
        elif last is not None and last.is_open and not (last.call and last.call.has_arguments):
            return last
        call = self._assembly.open_call(index=index)
        call.is_orphan = True
        return self._register(index, _Block({}, call))

    def _start(self, event: JsonObject) -> None:
        data, index = event.get("content_block"), whole_number(event.get("index"))
        if not isinstance(data, dict):
            return
        before = self._blocks.get(index) if index is not None else None
        if before is not None and _is_repeat(data, before):
            before.data = {**before.data, "input": data.get("input") or before.data.get("input")}
            return
        if index is None:
            self._tell_missing_index()
        elif before is not None:
            self._assembly.diagnose("index_renumbered", f"block index {index} serves another block")
        self._register(index, self._open_block(data, index))

    def _open_block(self, data: JsonObject, index: int | None = None) -> _Block:
        assembly = self._assembly
        match data.get("type") or ("tool_use" if "name" in data else "text"):
            case "text":
                assembly.end_part()
                if isinstance(text := data.get("text"), str) and text:
                    assembly.text(text)
            case "thinking":
                assembly.end_part()
                self._thinking = assembly.open_part(is_reasoning=True)
                self._sign(data.get("signature"))
                if isinstance(thinking := data.get("thinking"), str) and thinking:
                    assembly.reasoning(thinking)
            case "tool_use":
                call = assembly.open_call(index=index)
                call.id = identifier(data.get("id"))
                call.take_name(data.get("name"))
                assembly.touch(call)
                return _Block(data, call)
            case kind:
                assembly.opaque_part(data, is_reasoning=kind == "redacted_thinking")
        return _Block(data)

    def _register(self, index: int | None, block: _Block) -> _Block:
        if len(self._order) >= MAX_PARTS:
            raise LimitExceeded(f"a message takes {MAX_PARTS} blocks at most")
        if index is not None:
            self._blocks[index] = block
            self._calls.pop(index, None)
            if block.call is not None:
                self._calls[index] = block.call
        self._order.append(block)
        return block

    def _stop(self, event: JsonObject) -> None:
        index = whole_number(event.get("index"))
        if index is None:
            self._tell_missing_index()
        block = self._blocks.get(index) if index is not None else (self._order[-1] if self._order else None)
        if block is not None:
            block.is_open = False

    def _sign(self, signature: Any) -> None:
        """Keep the signature of the thinking block: it must go back with exactly this text."""
        if self._thinking is None:
            self._thinking = self._assembly.open_part(is_reasoning=True)
        known = (self._thinking.provider_data or {}).get(self._assembly.dialect, {}).get("signature", "")
        data = {"type": "thinking", "signature": known + (signature if isinstance(signature, str) else "")}
        self._thinking.provider_data = {self._assembly.dialect: data}

    def _tell_missing_index(self) -> None:
        if not self._has_told_missing_index:
            self._has_told_missing_index = True
            self._assembly.diagnose("index_missing", "events of a content block have no index")

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
            block = self._open_block(data)
            if block.call is not None and (given := data.get("input")):
                block.call.whole.append(given if isinstance(given, dict | str) else json.dumps(given))

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


def _is_repeat(data: JsonObject, before: _Block) -> bool:
    """Whether a block start only tells again of a call that has no arguments yet."""
    call = before.call
    if call is None or not (call.is_blank and before.is_open):
        return False
    given, known = data.get("input"), before.data.get("input")
    is_same = bool(call.id) and (data.get("id"), data.get("name")) == (call.id, call.name)
    return is_same and (not given or not known or given == known)


def _kind_by_shape(event: JsonObject) -> str:
    delta = event.get("delta")
    if isinstance(delta, dict):
        return "message_delta" if "stop_reason" in delta else "content_block_delta"
    if "content_block" in event:
        return "content_block_start"
    if isinstance(event.get("message"), dict):
        return "message_start"
    return "content_block_stop" if event.keys() == {"index"} else ""
