"""The content blocks of an Anthropic message, told apart by their index where it tells."""

import json
from dataclasses import dataclass, field
from typing import Any

from agent.message import JsonObject
from agent.wire.arguments import read_arguments
from agent.wire.assemble import Assembly
from agent.wire.draft import CallDraft, TextDraft
from agent.wire.limits import MAX_PARTS, LimitExceeded
from agent.wire.scalars import identifier, whole_number


@dataclass(slots=True, eq=False)
class Block:
    """A content block that was opened: a call, or something else with its raw content."""

    data: JsonObject
    call: CallDraft | None = None
    has_index: bool = True
    is_open: bool = True
    pieces: list[str] = field(default_factory=list)

    @property
    def takes_json(self) -> bool:
        """Whether fragments of JSON may belong to it."""
        return self.call is not None or "input" in self.data

    def take_input(self) -> None:
        """Take the arguments of a call that stand in its block."""
        if self.call is not None and (given := self.data.get("input")):
            self.call.whole.append(given if isinstance(given, dict | str) else json.dumps(given))


class ContentBlocks:
    """The blocks of one message in the order in which they were opened."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._by_index: dict[int, Block] = {}
        self._order: list[Block] = []
        self._thinking: TextDraft | None = None
        self._has_told_missing_index = False

    def think(self, piece: str) -> None:
        """Take thinking; it is signed later, or not at all."""
        if self._thinking is None:
            self.sign("")
        self._assembly.reasoning(piece)

    def find(self, index: int | None) -> Block:
        """Find the block of a JSON fragment; its index may be missing, unknown or that of a text."""
        known = self._by_index.get(index) if index is not None else None
        if known is not None and known.takes_json:
            return known
        last = next((block for block in reversed(self._order) if block.takes_json), None)
        if index is None:
            self._tell_missing_index()
            if last is not None and (last.is_open or last is self._order[-1]):
                return last
        elif last is not None and last.is_open and not last.has_index:
            return self._place(index, last)
        elif last is not None and last.is_open and not (last.call and last.call.has_arguments):
            return last
        call = self._assembly.open_call(index=index)
        call.is_orphan = True
        return self._register(index, Block({}, call))

    def is_settled(self, block: Block, index: Any) -> bool:
        """Whether fragments under that index belong to the block until another event comes."""
        return type(index) is int and self._by_index.get(index) is block

    def start(self, event: JsonObject) -> None:
        """Take that a block is opened in the stream."""
        data, index = event.get("content_block"), whole_number(event.get("index"))
        if not isinstance(data, dict):
            return
        before = self._by_index.get(index) if index is not None else None
        if before is not None and _is_repeat(data, before):
            before.data = {**before.data, "input": data.get("input") or before.data.get("input")}
            return
        if index is None:
            self._tell_missing_index()
        elif before is not None:
            self._assembly.diagnose("index_renumbered", f"block index {index} serves another block")
        self._register(index, self.open(data, index))

    def open(self, data: JsonObject, index: int | None = None) -> Block:
        """Take what a block holds; it may be whole."""
        assembly = self._assembly
        match data.get("type") or ("tool_use" if "name" in data else "text"):
            case "text":
                assembly.end_part()
                if isinstance(text := data.get("text"), str) and text:
                    assembly.text(text)
            case "thinking":
                assembly.end_part()
                self._thinking = assembly.open_part(is_reasoning=True)
                self.sign(data.get("signature"))
                if isinstance(thinking := data.get("thinking"), str) and thinking:
                    assembly.reasoning(thinking)
            case "tool_use":
                call = assembly.open_call(index=index)
                call.id = identifier(data.get("id"))
                call.take_name(data.get("name"))
                assembly.touch(call)
                return Block(data, call)
            case kind:
                assembly.opaque_part(data, is_reasoning=kind == "redacted_thinking")
        return Block(data)

    def _register(self, index: int | None, block: Block) -> Block:
        if len(self._order) >= MAX_PARTS:
            raise LimitExceeded(f"a message takes {MAX_PARTS} blocks at most")
        self._order.append(block)
        block.has_index = False
        return block if index is None else self._place(index, block)

    def _place(self, index: int, block: Block) -> Block:
        block.has_index = True
        self._by_index[index] = block
        return block

    def stop(self, event: JsonObject) -> None:
        """Take that a block is complete."""
        index = whole_number(event.get("index"))
        if index is None:
            self._tell_missing_index()
        block = self._by_index.get(index) if index is not None else (self._order[-1] if self._order else None)
        if block is not None:
            block.is_open = False

    def sign(self, signature: Any) -> None:
        """Keep the signature of the thinking block: it must go back with exactly this text."""
        if self._thinking is None:
            self._thinking = self._assembly.open_part(is_reasoning=True)
        known = (self._thinking.provider_data or {}).get(self._assembly.dialect, {}).get("signature", "")
        data = {"type": "thinking", "signature": known + (signature if isinstance(signature, str) else "")}
        self._thinking.provider_data = {self._assembly.dialect: data}

    def settle(self) -> None:
        """Take what only the starts of blocks told, now that no more will come."""
        for block in self._order:
            if block.call is None:
                if block.pieces and isinstance(found := read_arguments(block.pieces), dict):
                    block.data["input"] = found
            elif block.call.is_blank or block.call.is_placeholder:
                block.take_input()

    def _tell_missing_index(self) -> None:
        if not self._has_told_missing_index:
            self._has_told_missing_index = True
            self._assembly.diagnose("index_missing", "events of a content block have no index")


def _is_repeat(data: JsonObject, before: Block) -> bool:
    """Whether a block start only tells again of a call that has no arguments yet."""
    call = before.call
    if call is None or not (call.is_blank and before.is_open):
        return False
    given, known = data.get("input"), before.data.get("input")
    is_same = bool(call.id) and (data.get("id"), data.get("name")) == (call.id, call.name)
    return is_same and (not given or not known or given == known)
