"""A transcript as Markdown."""

import pytest

from agent.budget import Budget, Spent
from agent.entries import Added, Began, Entry, Stopped, Unknown
from agent.message import Diagnostic, Message, ReasoningPart, TextPart, ToolCall, ToolResult, UserMessage
from agent.show import to_markdown

ENTRIES: list[Entry] = [
    Began(
        "r1",
        "2026-11-30T12:00:00+00:00",
        "fix it",
        "/w",
        "zai",
        "glm-5.2",
        "openai-chat",
        Budget(turns=5, builds=None),
    ),
    Added(UserMessage("fix it")),
    Added(
        Message(
            (ReasoningPart("think\ntwice"), TextPart("I read."), ToolCall("c1", "read_file", {"path": "a"})),
            diagnostics=(Diagnostic("id_missing", "no id", 12),),
        ),
        Spent(turns=1, input_tokens=10),
    ),
    Added(ToolResult("c1", "read_file", "```\ncode\n```", is_error=True)),
    Stopped(
        "2026-11-30T12:00:09+00:00", "green", "built.", "Done.", Spent(turns=1, input_tokens=10, builds=2)
    ),
]


def test_a_run_is_shown_with_calls_results_oddities_and_totals() -> None:
    assert (
        to_markdown(ENTRIES)
        == """# Run r1

2026-11-30T12:00:00+00:00, zai/glm-5.2 (openai-chat), workspace `/w`

Budget: spent: 0 of 5 turns

## Told

fix it

## Model

> think
> twice

I read.

Call `read_file`:

```
{
 "path": "a"
}
```

*Odd: id_missing, no id (byte 12).*

Result of `read_file` (error):

````
```
code
```
````

**Stopped 2026-11-30T12:00:09+00:00: green.** built.

**Totals:** 1 turns, 10 tokens in (0 cached), 0 out, 0.0000 US dollars, 2 builds, 0 s of phone time, \
0 s at work
"""
    )


def test_the_results_of_long_tools_are_cut_in_the_middle_of_nothing() -> None:
    text = to_markdown(
        [ENTRIES[0], Added(Message((ToolCall("c1", "x", {}),))), Added(ToolResult("c1", "x", "l\n" * 100))]
    )
    assert "[60 more lines]" in text


@pytest.mark.parametrize("content", ["```", "  ```\n# no heading", "text ````` text", "> ~~~\n> ```"])
def test_no_result_ends_its_own_block(content: str) -> None:
    lines = to_markdown([ENTRIES[0], Added(ToolResult("c1", "x", content))]).splitlines()
    [opens, closes] = [
        place
        for place, line in enumerate(lines)
        if line and line == "`" * len(line) and line not in content.splitlines()
    ]
    assert lines[opens + 1 : closes] == content.splitlines()
    assert lines[opens] == lines[closes]
    assert lines[opens] not in content


def test_what_a_newer_program_wrote_is_named() -> None:
    assert "*An entry of a newer program.*" in to_markdown([ENTRIES[0], Unknown({"entry": "dreamt"})])
