"""What arguments mean, in how many pieces they may come, and why they are refused."""

import json

import pytest

from agent.wire.arguments import Unreadable, read_arguments


@pytest.mark.parametrize(
    ("fragments", "expected"),
    [
        ([], {}),
        ([" \n"], {}),
        (["null"], {}),
        (['""'], {}),
        (["{}"], {}),
        (['{"a":', "1}"], {"a": 1}),
        (["{}", '{"a":1}'], {"a": 1}),
        (["{}", "{}", '{"a"', ":1}"], {"a": 1}),
        (["{}", "{}"], {}),
        (['{"a"', '{"a":1', '{"a":1}'], {"a": 1}),
        (['{"a"', '{"a":1}', '{"a":1}'], {"a": 1}),
        (['{"a":', "1}", '{"a":1}'], {"a": 1}),
        (['{"a":', "1}", '{ "a" : 1 }'], {"a": 1}),
        (['{"a"', ":1}", '{"a"', ":1}"], {"a": 1}),
        (['"{\\"a\\":', '1}"'], {"a": 1}),
        (['{"a":"x\n', '\ty"}'], {"a": "x\n\ty"}),
        (['{"a":"\ud83d', '\ude80"}'], {"a": "🚀"}),
        (['{"a":', '"{}"}'], {"a": "{}"}),
    ],
)
def test_shapes_with_one_reading_are_taken(fragments: list[str], expected: dict[str, object]) -> None:
    assert read_arguments(fragments) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            '{"a":1}}',
            'are not JSON: the object ends, but more text follows at character 8, near "{\\"a\\":1}}"',
        ),
        ('{"a":"unfin', "are cut off after 11 characters"),
        ('{"a":"un\nfin', "are cut off after 12 characters"),
        ("[1]", "are a JSON array and not a JSON object"),
        ("12", "are a JSON number and not a JSON object"),
        ("true", "are a JSON truth value and not a JSON object"),
        ('"\\"{}\\""', "are a JSON string and not a JSON object"),
        ('{"ä": Hilt}', 'are not JSON: expected value at character 7, near "{\\"\\u00e4\\": Hilt}"'),
        ('{"a":\n{"b":x}}', 'are not JSON: expecting value at character 12, near "{\\"a\\":\\n{\\"b\\":x}}"'),
        ('{"a":1e999}', "are not JSON: a number is too large"),
        ('{"a":"\ud83d"}', "are not JSON: half of a surrogate pair at character 7"),
    ],
)
def test_a_refusal_says_what_is_wrong_and_where(text: str, why: str) -> None:
    assert read_arguments([text]) == Unreadable(why, is_cut="cut off" in why)


@pytest.mark.parametrize(
    "text",
    [
        "{'a':1}",
        '{"a":1,}',
        "{a:1}",
        '```json\n{"a":1}\n```',
        '{"a":NaN}',
        '{"a":"\\ud83d"}',
        '{"a":"\\ud83d\n"}',
        '{"a":1}{"b":2}',
        "{" * 500,
        '{"a":' * 300 + "1" + "}" * 300,
        '{"a":1} trailing',
        "{}[]",
        '{"a":"\\x"}',
    ],
)
def test_nothing_is_repaired_by_guessing(text: str) -> None:
    assert isinstance(read_arguments([text]), Unreadable)
    assert isinstance(read_arguments(list(text)), Unreadable)


def test_concatenation_wins_over_every_other_reading() -> None:
    assert read_arguments(['{"a":"', "{}", '{}"}']) == {"a": "{}{}"}


def test_long_arguments_in_single_characters_are_read() -> None:
    content = "val x = 1\n" * 20_000
    assert read_arguments(list(json.dumps({"content": content}))) == {"content": content}
