"""Decode OpenAI Chat Completions, as OpenAI and its many imitators stream them.

Shapes are taken as they come: one plain completion, `message` for `delta`, calls without a list,
choices without an index, an envelope around it all, thinking under four names, failures in a dozen.
"""

from typing import Any

from agent.message import JsonObject
from agent.wire.answer_index import AnswerIndex
from agent.wire.assemble import Assembly
from agent.wire.failure import describe, named_failure, told_failure
from agent.wire.openai_calls import CallRoutes
from agent.wire.reasoning_details import ReasoningDetails

_REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking", "thought", "reasoning_text")
_ENVELOPES = ("data", "result", "response", "body", "output")
_ANSWER_KEYS = frozenset(
    ("choices", "message", "delta", "content", "tool_calls", "response", "data", "result", "error")
)
_MESSAGE_KEYS = frozenset(("content", "tool_calls", "function_call", "reasoning_content"))
_FINISH_KEYS = ("finish_reason", "finishReason", "done_reason")


class Decoder:
    """Turn the events of one chat response into what an assembly takes."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._routes = CallRoutes(assembly)
        self._details = ReasoningDetails()
        self._answer = AnswerIndex(self._begin_anew)
        self._repeat: JsonObject = {}
        self._has_streamed = False
        self._has_details_alone = False

    def decode(self, event: JsonObject) -> None:
        """Take one event."""
        choices = event.get("choices")
        if type(choices) is not list or not choices or "error" in event or "base_resp" in event:
            self._decode_odd(event)
            return
        for choice in choices:
            if type(choice) is dict:
                self._take_choice(choice)
        if "usage" in event or "x_groq" in event:
            self._take_usage(event)
        if "finish_reason" in event:
            self._assembly.finish(event["finish_reason"])

    def close(self) -> None:
        """Take what only a message that repeats the stream told, now that the stream is over."""
        assembly, repeat = self._assembly, self._repeat
        if repeat:
            if not assembly.has_text(is_reasoning=True):
                self._take_reasoning(repeat)
            if not assembly.has_text(is_reasoning=False):
                self._take_content(repeat)
            self._routes.repair(repeat.get("tool_calls"))
            if isinstance(legacy := repeat.get("function_call"), dict) and not assembly.calls:
                self._routes.take_legacy(legacy)
        self._routes.settle()
        self._details.settle()
        self._routes.report_renumbered()

    def _decode_odd(self, event: JsonObject, depth: int = 0) -> None:
        """Take an event without a list of choices, or one that may tell a failure."""
        failure = named_failure(event)
        choices = event.get("choices")
        if isinstance(choices, dict):
            choices = [choices]
        inner = next((event[key] for key in _ENVELOPES if _is_envelope(event.get(key))), None)
        if choices and isinstance(choices, list):
            for choice in choices:
                if isinstance(choice, dict):
                    self._take_choice(choice)
        elif inner is not None and depth < 3:
            self._decode_odd(inner, depth + 1)
        elif isinstance(event.get("delta"), dict) or isinstance(event.get("message"), dict):
            self._take_choice(event)
        elif _MESSAGE_KEYS & event.keys() and failure is None:
            self._take_choice({**event, "delta" if "object" not in event else "message": event})
        elif isinstance(event.get("response"), str) and failure is None:
            self._take_choice({**event, "delta": {**event, "content": event["response"]}})
        elif failure is None:
            for key in _FINISH_KEYS:
                self._assembly.finish(event.get(key))
            failure = told_failure(event)
            if failure is None and self._assembly.event_name == "error":
                failure = describe(event)
            self._assembly.suspect(event)
        self._take_usage(event)
        if failure is not None:
            self._assembly.fail(failure)

    def _take_choice(self, choice: JsonObject) -> None:
        index, delta = choice.get("index"), choice.get("delta")
        if index != self._answer.value and not self._answer.selects(index):
            return
        if type(delta) is dict:
            if len(delta) == 1:
                content, calls = delta.get("content"), delta.get("tool_calls")
                if type(content) is str:
                    self._has_streamed = True
                    if content:
                        self._assembly.text(content)
                elif type(calls) is list and len(calls) == 1:
                    self._has_streamed = True
                    self._routes.take(calls[0])
                else:
                    self._take_delta(delta)
            elif delta:
                self._take_delta(delta)
        usual_keys = 2 + ("finish_reason" in choice) + ("logprobs" in choice)
        if len(choice) != usual_keys or index is None or type(delta) is not dict:
            self._take_unusual(choice, delta)
        if word := choice.get("finish_reason"):
            self._assembly.finish(word)

    def _take_unusual(self, choice: JsonObject, delta: Any) -> None:
        if isinstance(delta, str):
            self._take_content({"content": delta})
        message = choice.get("message")
        if isinstance(message, dict) and message:
            is_repeat = bool(delta) or self._has_streamed
            if is_repeat:
                self._repeat = message
            else:
                self._take_delta(message, is_whole=True)
        if isinstance(text := choice.get("text"), str) and text and not message:
            self._assembly.text(text)
        for key in _FINISH_KEYS:
            self._assembly.finish(choice.get(key))
        self._take_usage(choice)
        if failure := named_failure({"error": choice.get("error")}):
            self._assembly.fail(failure)

    def _begin_anew(self) -> None:
        self._assembly.restart()
        self._routes = CallRoutes(self._assembly)

    def _take_delta(self, delta: JsonObject, *, is_whole: bool = False) -> None:
        """Take what a delta holds; in one delta thinking comes before text, and text before calls."""
        self._has_streamed = self._has_streamed or not is_whole
        self._take_reasoning(delta)
        self._take_content(delta)
        calls = delta.get("tool_calls")
        for place, raw in enumerate(calls if isinstance(calls, list) else [calls]):
            self._routes.take(raw, place, is_whole=is_whole)
        if isinstance(legacy := delta.get("function_call"), dict):
            self._routes.take_legacy(legacy)
        if "error" in delta and (failure := named_failure({"error": delta["error"]})):
            self._assembly.fail(failure)

    def _take_reasoning(self, delta: JsonObject) -> None:
        """Take thinking; the same in a second field counts once."""
        field: str = next((key for key in _REASONING_FIELDS if delta.get(key)), "")
        text = _text_in(delta[field]) if field else ""
        details = delta.get("reasoning_details")
        if isinstance(details, list) and details:
            new = self._details.take(details)
            if not text:
                field, text = "reasoning_details", new
        if not field:
            return
        part = self._assembly.open_part(is_reasoning=True)
        if field == "reasoning_details" and not self._has_details_alone:
            self._has_details_alone = True
            if part.text == text:
                return
        data: JsonObject = {"field": field if field in delta else "reasoning_content"}
        if self._details.entries:
            data["reasoning_details"] = self._details.entries
        part.provider_data = {self._assembly.dialect: data}
        if text:
            self._assembly.reasoning(text)

    def _take_content(self, delta: JsonObject) -> None:
        content = delta.get("content")
        if isinstance(content, str):
            if content:
                self._assembly.text(content)
        elif isinstance(content, dict | list):
            for part in content if isinstance(content, list) else [content]:
                self._take_content_part(part)
        if isinstance(refusal := delta.get("refusal"), str) and refusal:
            self._assembly.text(refusal)

    def _take_content_part(self, part: Any) -> None:
        if isinstance(part, str):
            part = {"text": part}
        if not isinstance(part, dict):
            return
        thinking = next((part[key] for key in ("thinking", "reasoning") if part.get(key)), None)
        if thinking is None and part.get("type") in ("thinking", "reasoning"):
            thinking = part.get("text") or ""
        if thinking is not None:
            draft = self._assembly.open_part(is_reasoning=True)
            draft.provider_data = {self._assembly.dialect: {"field": "content"}}
            if text := _text_in(thinking):
                self._assembly.reasoning(text)
            return
        answer = part.get("text") or part.get("refusal")
        if isinstance(answer, str) and answer:
            self._assembly.text(answer)

    def _take_usage(self, holder: JsonObject) -> None:
        groq = holder.get("x_groq")
        for usage in (holder.get("usage"), groq.get("usage") if isinstance(groq, dict) else None):
            if isinstance(usage, dict):
                self._assembly.counts.take_openai(usage)
        if "eval_count" in holder:
            self._assembly.counts.take_openai(holder)


def _is_envelope(value: Any) -> bool:
    return isinstance(value, dict) and bool(_ANSWER_KEYS & value.keys())


def _text_in(value: Any) -> str:
    """Give the text of a string, a part or a list of parts."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(map(_text_in, value))
    if isinstance(value, dict):
        return next(
            (value[key] for key in ("text", "content", "thinking") if isinstance(value.get(key), str)), ""
        )
    return ""
