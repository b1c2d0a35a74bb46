"""Keep the texts of a Responses stream right: deltas, then the whole text again up to three times."""

from dataclasses import dataclass, field
from typing import Any

from agent.message import JsonObject
from agent.wire.assemble import Assembly
from agent.wire.draft import TextDraft
from agent.wire.think_tag import without_thinking

_Key = tuple[bool, Any, Any, int]
"""Whether it is thinking, the item's output index or else its id, the part's number in the item, and
how many items were announced at that place before."""


@dataclass(slots=True)
class _Text:
    """One text part: its deltas, and the drafts that they went to."""

    pieces: list[str] = field(default_factory=list)
    drafts: list[TextDraft] = field(default_factory=list)
    is_done: bool = False


class ResponseTexts:
    """The visible texts and the thinking of one response."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._texts: dict[_Key, _Text] = {}
        self._last_key: _Key | None = None
        self._kept_items: set[str] = set()
        self._rounds: dict[Any, int] = {}

    def begin_item(self, event: JsonObject, item: JsonObject) -> None:
        """Take that a message or thinking is announced: what has no place of its own belongs to it now."""
        is_reasoning = item.get("type") == "reasoning"
        place = _place({**event, "item_id": item.get("id")})
        if any(key[1] == place for key in self._texts):
            self._rounds[place] = self._rounds.get(place, 0) + 1
        for key, text in self._texts.items():
            text.is_done = text.is_done or key[0] is is_reasoning
        self._last_key = None

    def extend(self, event: JsonObject, *, is_reasoning: bool) -> None:
        """Take a delta."""
        piece = event.get("delta")
        if type(piece) is str and piece:
            self._add(self._key(event, is_reasoning), piece)

    def finish(self, event: JsonObject, text: Any, *, is_reasoning: bool) -> None:
        """Take the whole text of a part; it beats its deltas."""
        if isinstance(text, str) and text:
            self._settle(self._key(event, is_reasoning), text)

    def finish_item(self, event: JsonObject, item: JsonObject) -> None:
        """Take a whole message or reasoning item."""
        is_reasoning = item.get("type") == "reasoning"
        place = {"output_index": event.get("output_index"), "item_id": item.get("id")}
        for number, text in enumerate(_texts_of(item)):
            self.finish({**place, "content_index": number}, text, is_reasoning=is_reasoning)
        if is_reasoning:
            self._keep(self._key({**place, "content_index": 0}, True), item)

    def settle(self, output: list[JsonObject]) -> None:
        """Take the items of the final response, where they tell what the stream did not."""
        assembly = self._assembly
        has_text = assembly.has_text(is_reasoning=False)
        has_reasoning = assembly.has_text(is_reasoning=True)
        for number, item in enumerate(output):
            is_reasoning = item.get("type") == "reasoning"
            if not (has_reasoning if is_reasoning else has_text):
                self.finish_item({"output_index": ("final", number)}, item)
            elif is_reasoning and str(item.get("id")) not in self._kept_items:
                self._keep((True, ("final", number), 0, 0), item)
        if has_text:
            self._repair(without_thinking(_joined(output, "message")), is_reasoning=False)
        if has_reasoning:
            self._repair(_joined(output, "reasoning"), is_reasoning=True)

    def _key(self, event: JsonObject, is_reasoning: bool) -> _Key:
        place, part = _place(event), event.get("summary_index", event.get("content_index"))
        return is_reasoning, place, part if type(part) is int else 0, self._rounds.get(place, 0)

    def _add(self, key: _Key, piece: str) -> TextDraft | None:
        text = self._texts.get(key) or self._same_under_new_id(key)
        if text is None:
            text = self._texts[key] = _Text()
        if key != self._last_key:
            if self._last_key is None or self._texts[self._last_key] is not text:
                self._assembly.end_part()
            self._last_key = key
        text.pieces.append(piece)
        draft = self._assembly.reasoning(piece) if key[0] else self._assembly.text(piece)
        if draft is not None and (not text.drafts or text.drafts[-1] is not draft):
            text.drafts.append(draft)
        return draft

    def _same_under_new_id(self, key: _Key) -> _Text | None:
        """Give the text that is growing if a delta without an index only names another item id."""
        last = self._last_key
        if last is None or isinstance(key[1], int) or isinstance(last[1], int):
            return None
        text = self._texts[last]
        if text.is_done or (last[0], last[2]) != (key[0], key[2]):
            return None
        self._texts[key] = text
        return text

    def _settle(self, key: _Key, whole: str) -> None:
        text = self._texts.get(key) or self._unplaced(key)
        if text is None:
            self._add(key, whole)
            self._texts[key].is_done = True
            return
        told = "".join(text.pieces)
        if told != whole:
            if "".join(draft.text for draft in text.drafts) == told and text.drafts:
                text.drafts[0].replace(whole)
                for draft in text.drafts[1:]:
                    draft.replace("")
            elif whole.startswith(told):
                self._add(key, whole[len(told) :])
            text.pieces = [whole]
        text.is_done = True

    def _unplaced(self, key: _Key) -> _Text | None:
        """Give the last text of the same kind that is not done, if either place is unsure."""
        for known, text in reversed(self._texts.items()):
            unsure = not (isinstance(known[1], int) and isinstance(key[1], int | tuple))
            if known[0] is key[0] and not text.is_done and unsure:
                return text
        return None

    def _keep(self, key: _Key, item: JsonObject) -> None:
        """Keep a reasoning item as it is, with its thinking: it must go back unchanged."""
        if isinstance(item.get("id"), str):
            self._kept_items.add(item["id"])
        text = self._texts.get(key) or self._unplaced(key)
        drafts = text.drafts if text is not None else []
        if drafts:
            drafts[0].provider_data = {self._assembly.dialect: {"item": item}}
        else:
            self._assembly.opaque_part({"item": item}, is_reasoning=True)

    def _repair(self, whole: str, *, is_reasoning: bool) -> None:
        """Put the final text, or thinking, in place of a streamed one that lacks something."""
        drafts = [
            part
            for part in self._assembly.parts
            if isinstance(part, TextDraft) and part.is_reasoning is is_reasoning and not part.is_tagged
        ]
        if drafts and len(whole) > sum(len(draft.text) for draft in drafts):
            drafts[0].replace(whole)
            for draft in drafts[1:]:
                draft.replace("")


def _joined(output: list[JsonObject], kind: str) -> str:
    return "".join(text for item in output if item.get("type") == kind for text in _texts_of(item))


def _place(event: JsonObject) -> Any:
    """Give where an event's item stands: its output index, else its id, None where it has neither."""
    index, item_id = event.get("output_index"), event.get("item_id")
    return index if isinstance(index, int | tuple) else item_id if isinstance(item_id, str) else None


def _texts_of(item: JsonObject) -> list[str]:
    """Give the texts of an item in order: a message's output and refusals, thinking's summary or content."""
    parts = item.get("summary") or item.get("content")
    if isinstance(parts, str):
        return [parts]
    texts = [part.get("text") or part.get("refusal") for part in parts or () if isinstance(part, dict)]
    return [text if isinstance(text, str) else "" for text in texts]
