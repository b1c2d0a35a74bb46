"""Decode OpenAI Responses, as OpenAI, Azure, OpenRouter, vLLM and others stream them.

The same thing is told up to four times: in deltas, by a `done` of the part, by `output_item.done` and
in the final response. Later, fuller tellings repair earlier ones; an empty one wipes nothing.
"""

import json
from typing import Any

from agent.message import JsonObject
from agent.wire.assemble import Assembly
from agent.wire.failure import describe, named_failure, told_failure
from agent.wire.response_calls import ResponseCalls, is_call
from agent.wire.response_texts import ResponseTexts
from agent.wire.scalars import identifier

_REASONING = (
    "reasoning_summary_text",
    "reasoning_text",
    "reasoning_summary",
    "reasoning",
    "reasoning_content",
)
_TEXT_DELTAS = {
    "response.output_text.delta": False,
    "response.refusal.delta": False,
    **{f"response.{kind}.delta": True for kind in _REASONING},
}
"""Whether the deltas of that name are thinking."""
_TEXT_DONES = {name.replace(".delta", ".done"): is_reasoning for name, is_reasoning in _TEXT_DELTAS.items()}
_ARGUMENT_DELTAS = ("response.function_call_arguments.delta", "response.custom_tool_call_input.delta")
_ARGUMENT_DONES = ("response.function_call_arguments.done", "response.custom_tool_call_input.done")
_PART_DONES = ("response.content_part.done", "response.reasoning_summary_part.done")
_ITEMS_OF_TEXT = ("message", "reasoning")
_MAX_FINALS = 4
"""A response has one final event, some servers send a second; what more of them hold is not looked at."""
_ENDS = ("completed", "incomplete", "failed", "cancelled", "done")


class Decoder:
    """Turn the events of one Responses answer into what an assembly takes."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._calls = ResponseCalls(assembly)
        self._texts = ResponseTexts(assembly)
        self._finals = 0

    def decode(self, event: JsonObject) -> None:
        """Take one event."""
        kind = event.get("type")
        if type(kind) is not str or not kind:
            kind = self._assembly.event_name
        if kind in _TEXT_DELTAS:
            self._texts.extend(event, is_reasoning=_TEXT_DELTAS[kind])
        elif kind in _ARGUMENT_DELTAS:
            piece = event.get("delta")
            if piece and (call := self._calls.of_arguments(event)) is not None:
                text = piece if type(piece) is str else json.dumps(piece, ensure_ascii=False)
                self._assembly.extend(call, text)
        elif kind in _TEXT_DONES:
            self._texts.finish(
                event, event.get("text") or event.get("refusal"), is_reasoning=_TEXT_DONES[kind]
            )
        elif kind in _ARGUMENT_DONES:
            self._finish_arguments(event)
        elif kind in _PART_DONES and isinstance(part := event.get("part"), dict):
            is_reasoning = "reasoning" in kind or "reasoning" in str(part.get("type"))
            self._texts.finish(event, part.get("text") or part.get("refusal"), is_reasoning=is_reasoning)
        elif kind == "response.output_item.added" and isinstance(item := event.get("item"), dict):
            if is_call(item):
                self._calls.announce(event, item)
            elif item.get("type") in _ITEMS_OF_TEXT:
                self._texts.begin_item(event, item)
            else:
                self._calls.note_hosted(event, item)
        elif kind == "response.output_item.done" and isinstance(item := event.get("item"), dict):
            self._finish_item(event, item)
        else:
            self._take_end(event, kind.removeprefix("response."))

    def close(self) -> None:
        """Take that the stream is over; nothing is left to be told."""

    def _finish_arguments(self, event: JsonObject) -> None:
        call = self._calls.of_arguments(event)
        if call is None:
            return
        call.is_closed = True
        call.id = call.id or identifier(event.get("call_id"))
        if not call.name:
            call.take_name(event.get("name"))
        given = event.get("arguments") or event.get("input")
        if isinstance(given, str | dict) and given:
            call.whole.append(given)

    def _finish_item(self, event: JsonObject, item: JsonObject) -> None:
        if is_call(item):
            self._calls.finish(event, item)
        elif item.get("type") in _ITEMS_OF_TEXT:
            self._texts.finish_item(event, item)
        else:
            self._assembly.opaque_part({"item": item})

    def _take_end(self, event: JsonObject, kind: str) -> None:
        """Take a final response, be it an event's or the plain body, or a failure; other events are none."""
        response = event.get("response")
        if kind in _ENDS:
            self._settle(response if isinstance(response, dict) else event, kind)
        elif isinstance(event.get("output"), list) or event.get("object") == "response":
            self._settle(event, "completed")
        else:
            failure = named_failure(event)
            if failure is None and kind in ("", "error"):
                failure = describe(event) if kind else told_failure(event)
            if not kind:
                self._assembly.suspect(event)
            if failure is not None:
                self._assembly.fail(failure)

    def _settle(self, response: JsonObject, kind: str) -> None:
        """Take the final response; it beats all that was streamed, except by what it leaves out."""
        self._finals += 1
        output = response.get("output") if self._finals <= _MAX_FINALS else None
        items = [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []
        if not self._assembly.parts:
            for number, item in enumerate(items):
                self._finish_item({"output_index": number}, item)
        else:
            self._texts.settle([item for item in items if item.get("type") in _ITEMS_OF_TEXT])
            self._calls.settle([item for item in items if is_call(item)])
        if isinstance(usage := response.get("usage"), dict):
            self._assembly.counts.take_openai(usage)
        self._take_status(response, kind)

    def _take_status(self, response: JsonObject, kind: str) -> None:
        status: Any = response.get("status")
        status = status if status in _ENDS else kind
        failure = named_failure({"error": response.get("error")})
        if status == "failed" or failure is not None:
            self._assembly.fail(failure or "the provider says that the response failed, but not why")
        elif status == "incomplete":
            details = response.get("incomplete_details")
            reason = details.get("reason") if isinstance(details, dict) else None
            self._assembly.finish(reason if isinstance(reason, str) and reason else "length")
        else:
            self._assembly.finish(status, is_tool_word_too=status in ("completed", "done"))
