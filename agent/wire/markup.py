"""Recognize tool calls that a model wrote into its text, because its server did not parse them.

Such a call is never run: the text may quote, explain or only plan it. It is worth telling, since the
model believes that it called a tool. Only complete markup counts, and only with something call-like
inside, so that prose about tags is not taken for a call. Time is linear in the length of the text.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from agent.wire.json_text import Nesting

_CALL_LIKE = re.compile(
    r'"(?:name|function|tool|tool_name|recipient_name)"\s*:'
    r"|<(?:\w+:)?(?:function|invoke|parameter|(?:longcat_)?arg_key|tool)\b"
    r"|\b[A-Za-z_][\w.-]*\s*[({]"
)
_LOOKED_AT_CHARS = 4000
_LONGEST_BARE_CALL_CHARS = 100_000


@dataclass(frozen=True, slots=True)
class _Form:
    """Markup between an opening and a closing; `{}` in the closing is the opening's first group."""

    opening: re.Pattern[str]
    closing: str
    inside: re.Pattern[str] | None = None


_FORMS = (
    # Qwen, Hermes, GLM, MiniMax, LongCat, Hunyuan, Seed: a tag around JSON, around tags, or around a name
    _Form(
        re.compile(
            r"<((?:[\w-]+:)?(?:tool_calls?|toolcalls?|function_calls?|tool_code|longcat_tool_call|tool_use))\b[^<>]{0,200}>",
            re.IGNORECASE,
        ),
        "</{}>",
        _CALL_LIKE,
    ),
    # GLM: a tool without parameters
    _Form(re.compile(r"<tool_call>(?=\s*[A-Za-z]\w*_\w+\s*</tool_call>)"), "</tool_call>"),
    # Llama: a call in Python
    _Form(re.compile(r"<\|python_tag\|>\s*[A-Za-z_][\w.]*\.call\("), ")"),
    _Form(re.compile(r"<\|python_start\|>\s*\[?\s*[A-Za-z_][\w.]*\("), "<|python_end|>"),
    # Llama and Qwen coder
    _Form(re.compile(r"<function(?:=|\s+name=)[^<>]{1,200}>"), "</function>"),
    # Anthropic, MiniMax, xAI
    _Form(re.compile(r"<((?:\w+:)?(?:invoke|tool_call|function_call))\s+name=[^<>]{1,200}>"), "</{}>"),
    # DeepSeek's DSML, with bars of either width
    _Form(re.compile(r"<([|\uff5c]DSML[|\uff5c]invoke)\b[^<>]{0,200}>"), "</{}>"),
    # DeepSeek, Kimi, Step: special tokens
    _Form(re.compile(r"<[|\uff5c](tool[_\u2581]call[_\u2581])begin[|\uff5c]>"), "{}end"),
    # gpt-oss: a message to a function
    _Form(
        re.compile(r"<\|(?:channel|start)\|>[^<]{0,100}\bto=[\w.-]+"),
        "<|call|>",
        re.compile(r"<\|message\|>"),
    ),
    # Gemma
    _Form(re.compile(r"<start_function_call>\s*call:"), "<end_function_call>"),
    _Form(re.compile(r"<\|tool_call>\s*call:"), "<tool_call|>"),
    _Form(re.compile(r"```tool_(?:code|calls?)\b\s*(?=[^\s`])"), "```"),
)

_BEFORE_JSON = re.compile(
    r"(?:\[TOOL_CALLS\](?P<name>\s*[A-Za-z_][\w.-]*(?=\s*\{))?|functools(?=\[\s*\{)|<\|(?:python_tag|tool_calls?|tools_prefix|START_ACTION|action_start|function_call)\|>)"
    r"(?:\s*<\|plugin\|>)?[^\[{<]{0,100}?(?:\[CALL_ID\][\w-]{0,60})?(?P<args>\[ARGS\])?\s*(?=\[\s*\{|\{)"
)
"""Mistral, Llama 3, Granite, Phi, Apertus, Command R, InternLM: a marker and then JSON."""

_HINT = re.compile(r"[<`\[]")
_FENCE = re.compile(r"\A```(?:json)?\s*(.*?)\s*```\Z", re.DOTALL)


def find_call_markup(text: str) -> int:
    """Give the index at which complete markup of a call begins in `text`, -1 where there is none."""
    if _is_bare_call(text):
        return 0
    if _HINT.search(text) is None:
        return -1
    places = [place for form in _FORMS for place in _closed(form, text)]
    return min((*places, *_json_after_marker(text)), default=-1)


def _closed(form: _Form, text: str) -> Iterator[int]:
    """Give the first place where the form stands complete, if there is one."""
    never_closed: set[str] = set()
    at = 0
    while opening := form.opening.search(text, at):
        at = opening.end()
        closing = form.closing.format(*opening.groups())
        if closing in never_closed:
            continue
        end = text.find(closing, at)
        if end < 0:
            never_closed.add(closing)
            continue
        if form.inside is None or form.inside.search(text, at, min(end, at + _LOOKED_AT_CHARS)):
            yield opening.start()
            return
        at = end


def _json_after_marker(text: str) -> Iterator[int]:
    at = 0
    while marker := _BEFORE_JSON.search(text, at):
        at = Nesting().feed(text, marker.end())
        if at < 0:
            return
        is_named = marker["name"] or marker["args"]
        if is_named or _CALL_LIKE.search(text, marker.end(), min(at, marker.end() + _LOOKED_AT_CHARS)):
            yield marker.start()
            return


def _is_bare_call(text: str) -> bool:
    """Whether the whole text is the JSON of a call: a name and arguments, and nothing of an answer."""
    if len(text) > _LONGEST_BARE_CALL_CHARS:
        return False
    text = text.strip()
    if fence := _FENCE.match(text):
        text = fence[1]
    if not (text.startswith(("{", "[")) and text.endswith(("}", "]"))):
        return False
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return False
    if isinstance(found, dict) and isinstance(found.get("tool_calls"), list):
        found = found["tool_calls"]
    calls = found if isinstance(found, list) else [found]
    return bool(calls) and all(map(_is_call, calls))


def _is_call(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    inner = value.get("function")
    call = inner if isinstance(inner, dict) else value
    has_name = any(isinstance(call.get(key), str) for key in ("name", "function", "tool", "tool_name"))
    return has_name and any(
        isinstance(call.get(key), dict | str) for key in ("arguments", "parameters", "input")
    )
