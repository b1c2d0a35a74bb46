"""Reading lines that repeat gives exactly what parsing them whole gives."""

import json
from copy import deepcopy

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.wire.sse import EventReader
from agent.wire.template import Template

KEYS = st.sampled_from(["content", "arguments", "text", "delta", "partial_json", "index", "x"])
LEAVES = st.one_of(
    st.text(max_size=8), st.sampled_from(['"', "\\", '\\"', '","content":"', "}", '{"content":"'])
) | (st.integers(-5, 5) | st.none() | st.booleans())
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=5,
)
OBJECTS = st.dictionaries(KEYS, VALUES, min_size=1, max_size=3)


@given(st.lists(st.tuples(OBJECTS, st.lists(st.text(max_size=5), max_size=4)), min_size=1, max_size=6))
@settings(deadline=None)
def test_lines_that_differ_in_a_string_are_read_as_json_reads_them(
    shapes: list[tuple[dict[str, object], list[str]]],
) -> None:
    objects = []
    for shape, texts in shapes:
        objects.append(shape)
        objects += [{**shape, "content": text} for text in texts]
        objects += [{"choices": [{"delta": {**shape, "content": text}}]} for text in texts]
    body = "".join(f"data: {json.dumps(value, ensure_ascii=False)}\n\n" for value in objects)
    reader = EventReader()
    assert [deepcopy(event) for event in reader.feed(body.encode())] == objects


def test_a_line_with_more_than_a_string_between_is_not_read() -> None:
    template = Template()
    template.learn(b'data: {"content":"a","n":1}', {"content": "a", "n": 1})
    assert template.read(b'data: {"content":"b","n":1}') == {"content": "b", "n": 1}
    assert template.read(b'data: {"content":"b","n":2}') is None
    assert template.read(b'data: {"content":"b","m":"c","n":1}') is None
    assert template.read(b'data: {"content":5,"n":1}') is None
    assert template.read(b'data: {"content":"b') is None


def test_lines_that_never_repeat_are_soon_no_longer_learned() -> None:
    template = Template()
    for number in range(100):
        line = b'data: {"n":%d,"content":"a"}' % number
        assert template.read(line) is None
        template.learn(line, json.loads(line[6:]))
    line = b'data: {"n":99,"content":"b"}'
    template.learn(line, json.loads(line[6:]))
    assert template.read(line) is None
