"""Decode Gemini's generateContent, streamed as events, as one JSON array, or whole.

Parts come whole, so a call is complete as it comes; only Vertex streams arguments, when asked to.
Names are taken in camel case and in the snake case of proxies that go through the Python SDK.
"""

from functools import cache
from typing import Any

from agent.message import JsonObject
from agent.wire.answer_index import AnswerIndex
from agent.wire.assemble import Assembly
from agent.wire.draft import CallDraft
from agent.wire.failure import describe, named_failure, told_failure
from agent.wire.json_path import put
from agent.wire.scalars import identifier

_COUNTS = {
    "promptTokenCount": "input",
    "toolUsePromptTokenCount": "tool_prompt",
    "candidatesTokenCount": "output",
    "thoughtsTokenCount": "thoughts",
    "cachedContentTokenCount": "cached",
}
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")
_ENVELOPES = ("response", "data", "result")


class Decoder:
    """Turn the events of one Gemini response into what an assembly takes."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._answer = AnswerIndex(self._begin_anew)
        self._open: CallDraft | None = None
        self._arguments: JsonObject = {}
        self._strings: dict[str, list[str]] = {}

    def decode(self, event: JsonObject) -> None:
        """Take one event."""
        candidates = event.get("candidates")
        for candidate in candidates if isinstance(candidates, list) else []:
            if isinstance(candidate, dict) and self._answer.selects(candidate.get("index")):
                self._take_candidate(candidate)
        if isinstance(usage := _get(event, "usageMetadata"), dict):
            for key, kind in _COUNTS.items():
                self._assembly.counts.set(kind, _get(usage, key))
        feedback = _get(event, "promptFeedback")
        reason = _get(feedback, "blockReason") if isinstance(feedback, dict) else None
        if isinstance(reason, str) and "UNSPECIFIED" not in reason:
            self._assembly.finish("content_filter")
        if candidates is None:
            inner = next((event[key] for key in _ENVELOPES if isinstance(event.get(key), dict)), None)
            if inner is not None and ("candidates" in inner or "error" in inner):
                self.decode(inner)
                return
        failure = named_failure(event) or (told_failure(event) if not candidates and not feedback else None)
        if failure is None and not candidates and self._assembly.event_name == "error":
            failure = describe(event)
        if failure is not None:
            self._assembly.fail(failure)
        elif not candidates:
            self._assembly.suspect(event)

    def close(self) -> None:
        """Take that no more of a call's arguments will come."""
        if self._open is not None:
            self._open.refusal = "were still coming when the response ended"
            self._end_call()

    def _begin_anew(self) -> None:
        self._assembly.restart()
        self._open = None

    def _take_candidate(self, candidate: JsonObject) -> None:
        content = candidate.get("content")
        parts = content.get("parts") if isinstance(content, dict) else None
        for part in parts if isinstance(parts, list) else [parts]:
            if isinstance(part, dict):
                self._take_part(part)
        note = _get(candidate, "finishMessage")
        self._assembly.finish(_get(candidate, "finishReason"), is_tool_word_too=True, note=note)

    def _take_part(self, part: JsonObject) -> None:
        signature = _get(part, "thoughtSignature")
        call = _get(part, "functionCall")
        text, is_call = part.get("text"), isinstance(call, dict)
        if isinstance(text, str):
            self._take_text(text, None if is_call else signature, is_reasoning=bool(part.get("thought")))
        if isinstance(call, dict):
            self._take_call(call, signature)
        elif not isinstance(text, str) and part.keys() - {"thought"}:
            self._assembly.opaque_part(part)

    def _take_text(self, text: str, signature: Any, *, is_reasoning: bool) -> None:
        """Take text; a signed part stays a part of its own, since the signature is for exactly this text."""
        assembly = self._assembly
        if signature is not None:
            assembly.end_part()
            draft = assembly.open_part(is_reasoning=is_reasoning)
            draft.provider_data = {assembly.dialect: {"thoughtSignature": signature}}
        if text:
            (assembly.reasoning if is_reasoning else assembly.text)(text)
        if signature is not None:
            assembly.end_part()

    def _take_call(self, call: JsonObject, signature: Any) -> None:
        name, arguments, partial = call.get("name"), _arguments(call), _get(call, "partialArgs")
        is_more = bool(_get(call, "willContinue"))
        if not any(call.values()) and self._open is None and self._assembly.calls:
            return
        draft = self._open
        if draft is None or self._is_another(draft, call):
            self._end_call()
            draft = self._open = self._assembly.open_call()
            draft.needs_id = False
            draft.is_orphan = bool(partial) and not identifier(name)
        if not draft.name:
            draft.take_name(name)
        draft.id = draft.id or identifier(call.get("id"))
        if signature is not None:
            draft.provider_data = {self._assembly.dialect: {"thoughtSignature": signature}}
        if isinstance(arguments, dict):
            self._arguments.update(arguments)
        elif arguments is not None:
            draft.whole.append(arguments if isinstance(arguments, str) else str(arguments))
        for piece in partial if isinstance(partial, list) else []:
            if isinstance(piece, dict):
                self._take_piece(draft, piece)
        self._assembly.touch(draft)
        if not is_more:
            self._end_call()

    def _is_another(self, draft: CallDraft, call: JsonObject) -> bool:
        """Whether a call comes although the one before never said that it ended."""
        name, call_id = identifier(call.get("name")), identifier(call.get("id"))
        is_other = bool(name) and draft.name not in ("", name)
        if is_other or (call_id and draft.id):
            return is_other or call_id != draft.id
        is_head = bool(name and _get(call, "willContinue")) and not (
            _arguments(call) or _get(call, "partialArgs")
        )
        return is_head and bool(self._arguments or self._strings)

    def _take_piece(self, draft: CallDraft, piece: JsonObject) -> None:
        path = str(_get(piece, "jsonPath") or "")
        key = next((key for key in _VALUES if key in piece), None)
        if key is None:
            return
        value = None if key == "nullValue" else piece[key]
        if path in self._strings and isinstance(value, str):
            self._strings[path].append(value)
            return
        draft.refusal = draft.refusal or put(self._arguments, path, value)
        if isinstance(value, str) and _get(piece, "willContinue"):
            self._strings[path] = [value]

    def _end_call(self) -> None:
        if self._open is not None:
            for path, pieces in self._strings.items():
                put(self._arguments, path, "".join(pieces))
            self._open.is_closed = self._open.refusal is None
            if self._arguments:
                self._open.whole.append(self._arguments)
        self._open, self._arguments, self._strings = None, {}, {}


def _arguments(call: JsonObject) -> Any:
    """Give the arguments of a call, also under the key that the other dialects have for them."""
    return call["args"] if "args" in call else call.get("arguments")


def _get(holder: JsonObject, key: str) -> Any:
    """Give the value under a key in camel case, or in snake case."""
    return holder[key] if key in holder else holder.get(_snake(key))


@cache
def _snake(key: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key)
