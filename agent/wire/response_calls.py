"""Find which call an event of a Responses stream is about.

A call has a call id, an item id and an output index. Servers leave each of them out, mint item ids
anew for every event, number from anywhere, give two items one id, or use other ids in the final
response. What fits nothing is about the last call that is still open.
"""

from collections.abc import Callable, Sequence
from typing import Any

from agent.message import JsonObject
from agent.wire.arguments import fingerprint
from agent.wire.assemble import Assembly
from agent.wire.draft import CallDraft
from agent.wire.scalars import identifier

_TYPES = frozenset(("function_call", "custom_tool_call", "tool_call"))


def is_call(item: JsonObject) -> bool:
    """Whether an item is a call that the client has to run."""
    return item.get("type") in _TYPES or (not item.get("type") and "name" in item)


class ResponseCalls:
    """The calls of one response, as far as they are known."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._by_item_id: dict[str, CallDraft | None] = {}
        self._by_index: dict[int, CallDraft] = {}
        self._hosted: set[str | int] = set()

    def note_hosted(self, event: JsonObject, item: JsonObject) -> None:
        """Note an item that the provider runs itself: its arguments are no call of the client's."""
        for place in (identifier(item.get("id")), event.get("output_index")):
            if type(place) is int or (type(place) is str and place):
                self._hosted.add(place)

    def of_arguments(self, event: JsonObject) -> CallDraft | None:
        """Give the call that an event about arguments belongs to; where there is none, an orphan.

        Gives None where the provider runs the item itself.
        """
        item_id, index = event.get("item_id"), event.get("output_index")
        if type(item_id) is str and item_id in self._hosted:
            return None
        known = self._by_item_id.get(item_id) if type(item_id) is str else None
        if known is None and type(index) is int:
            known = self._by_index.get(index)
            if known is not None and self._is_of_another(event, known):
                known = None
        elif known is None:
            known = self._still_open()
        if known is None and not item_id and index in self._hosted:
            return None
        if known is None:
            known = self._assembly.open_call()
            known.is_orphan = True
            self._register(known, event, {"id": item_id})
        return known

    def announce(self, event: JsonObject, item: JsonObject) -> None:
        """Take a call that begins; it may have its arguments already."""
        call_id = identifier(item.get("call_id"))
        known = self._same_place(event, item)
        if known is not None and not known.is_orphan:
            is_repeat = known.id == call_id and not known.is_closed and not known.pieces
            known = known if is_repeat and known.name in ("", item.get("name")) else None
        call = known or self._assembly.open_call()
        self._register(call, event, item)
        self._fill(call, item)
        given = _arguments(item)
        if isinstance(given, str) and given and not call.pieces:
            self._assembly.extend(call, given)
        elif isinstance(given, dict):
            call.whole.append(given)
        self._assembly.touch(call)

    def finish(self, event: JsonObject, item: JsonObject) -> None:
        """Take a whole call; it beats what its deltas gave."""
        call_id = identifier(item.get("call_id"))
        known = self._same_place(event, item)
        if known is None or (call_id and known.id not in ("", call_id)):
            same = next((call for call in self._assembly.calls if call_id and call.id == call_id), None)
            known = same or (known if known is not None and not known.is_closed else None)
        if known is None and type(event.get("output_index")) is not int:
            known = self._announced_last(call_id, item)
        call = known or self._assembly.open_call()
        self._register(call, event, item)
        self._take_whole(call, item)

    def settle(self, items: Sequence[JsonObject]) -> None:
        """Take the calls of the final response; an id that differs only there leaves the streamed one."""
        streamed = list(self._assembly.calls)
        pairs: dict[int, CallDraft] = {}

        def pair(fits: Callable[[JsonObject, CallDraft], Any]) -> None:
            for place, item in enumerate(items):
                free = (call for call in streamed if call not in pairs.values())
                if place not in pairs and (call := next((c for c in free if fits(item, c)), None)):
                    pairs[place] = call

        is_all = len(items) == len(streamed)
        pair(lambda item, call: call.id and call.id == item.get("call_id"))
        pair(lambda item, call: self._by_item_id.get(identifier(item.get("id"))) is call)
        pair(lambda item, call: call.name == item.get("name") and _has_arguments(call, item))
        pair(lambda item, call: call.name == item.get("name") and (is_all or not call.has_arguments))
        pair(lambda _, call: not call.name)
        for place, item in enumerate(items):
            self._take_whole(pairs.get(place) or self._assembly.open_call(), item)

    def _same_place(self, event: JsonObject, item: JsonObject) -> CallDraft | None:
        known = self._by_item_id.get(identifier(item.get("id")))
        index = event.get("output_index")
        return self._by_index.get(index) if known is None and type(index) is int else known

    def _is_of_another(self, event: JsonObject, call: CallDraft) -> bool:
        """Whether an event at the index of a whole call, under a new item id, is of another call."""
        item_id = identifier(event.get("item_id"))
        is_new = call.is_closed and bool(item_id) and item_id not in self._by_item_id
        return is_new and not _has_arguments(call, event)

    def _announced_last(self, call_id: str, item: JsonObject) -> CallDraft | None:
        """Give the last call if a whole one that nothing places can be it."""
        last = self._assembly.calls[-1] if self._assembly.calls else None
        if last is None or last.id not in ("", call_id) or last.name not in ("", item.get("name")):
            return None
        is_late_id = bool(call_id) and not last.id and _has_arguments(last, item)
        return last if is_late_id or not last.is_closed else None

    def _still_open(self) -> CallDraft | None:
        last = self._assembly.calls[-1] if self._assembly.calls else None
        return last if last is not None and not last.is_closed else None

    def _register(self, call: CallDraft, event: JsonObject, item: JsonObject) -> None:
        """Note where the call is found; an item id that two calls share finds neither."""
        index = event.get("output_index")
        if item_id := identifier(item.get("id")):
            self._by_item_id[item_id] = call if self._by_item_id.get(item_id, call) is call else None
        if type(index) is int:
            self._by_index[index] = call
            self._hosted.discard(index)

    def _fill(self, call: CallDraft, item: JsonObject) -> None:
        call.id = call.id or identifier(item.get("call_id"))
        if not call.name:
            call.take_name(item.get("name"))
        if item.get("type") == "custom_tool_call":
            call.is_plain_text = True
            call.provider_data = {self._assembly.dialect: {"type": "custom_tool_call"}}

    def _take_whole(self, call: CallDraft, item: JsonObject) -> None:
        self._fill(call, item)
        call.is_closed = item.get("status") != "incomplete"
        if isinstance(given := _arguments(item), str | dict) and given:
            call.whole.append(given)
        self._assembly.touch(call)


def _arguments(item: JsonObject) -> Any:
    return item.get("input" if item.get("type") == "custom_tool_call" else "arguments")


def _has_arguments(call: CallDraft, item: JsonObject) -> bool:
    """Whether the item has the very arguments that the call has by now."""
    told = CallDraft(0, 0, is_plain_text=call.is_plain_text)
    told.whole += [given] if isinstance(given := _arguments(item), str | dict) else []
    ours, theirs = call.read_arguments(), told.read_arguments()
    return isinstance(ours, dict) and isinstance(theirs, dict) and fingerprint(ours) == fingerprint(theirs)
