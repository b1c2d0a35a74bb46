"""Calls that a model wrote into its text are noticed; prose about them is not."""

import pytest

from agent.wire.markup import find_call_markup


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ('Gut. <tool_call>{"name": "f", "arguments": {}}</tool_call>', 5),
        ("<tool_call>f\n<arg_key>a</arg_key><arg_value>1</arg_value></tool_call>", 0),
        ("<tool_call>f(a=1)</tool_call>", 0),
        ("<function=f>{}</function>", 0),
        ('<minimax:tool_call><invoke name="f"></invoke></minimax:tool_call>', 0),
        ('<invoke name="f"></invoke>', 0),
        ('<｜DSML｜invoke name="f"></｜DSML｜invoke>', 0),
        ('<|DSML|invoke name="f"></|DSML|invoke>', 0),
        ("<｜tool▁call▁begin｜>f<｜tool▁call▁end｜>", 0),
        ("<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}<|tool_call_end|>", 0),
        ("<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>", 0),
        ('[TOOL_CALLS] [{"name": "f", "arguments": {}}]', 0),
        ('[TOOL_CALLS]f[ARGS]{"a": 1}', 0),
        ('<|python_tag|>{"name": "f", "parameters": {}}', 0),
        ('<|tool_call|>[{"name": "f", "arguments": {}}]', 0),
        ('{"name": "f", "arguments": {"a": 1}}', 0),
        ('```json\n[{"function": {"name": "f", "arguments": "{}"}}]\n```', 0),
        ("```tool_code\nprint(f())\n```", 0),
    ],
)
def test_complete_markup_is_found(text: str, at: int) -> None:
    assert find_call_markup(text) == at


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Models write `<tool_call>` and `</tool_call>` around calls.",
        '<tool_call>{"name": "f", "argu',
        "<function=f>{}",
        '[TOOL_CALLS] [{"name": "f"',
        "[TOOL_CALLS] is a token of Mistral.",
        '{"name": "Anna", "age": 5}',
        '[{"name": "Anna"}]',
        "if (a < b && c > d) { call(); }",
        "```kotlin\nfun f() {}\n```",
    ],
)
def test_prose_and_unfinished_markup_are_text(text: str) -> None:
    assert find_call_markup(text) == -1


@pytest.mark.parametrize(
    "unit",
    ["<tool_call>", "<function=a>", "[TOOL_CALLS]{", "[TOOL_CALLS]", "<|channel|>", "<invoke name=a>", "`<"],
)
def test_openings_that_never_close_take_linear_time(unit: str) -> None:
    assert find_call_markup(unit * 50_000) == -1
