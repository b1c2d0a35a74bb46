"""What a secret is, what the phone's filter leaves of a log, and what a plan shows of secrets."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder_bridge.box import Box
from builder_bridge.build import BuildSpec
from builder_bridge.plan import Edits, make_plan, request_digest
from builder_bridge.secret import (
    MAX_FILE_BYTES,
    MAX_TEXT_LINES,
    BadSecret,
    Secret,
    Secrets,
    mask_script,
    needles_of,
    parts_of,
)
from builder_bridge.workspace.snapshot import Snapshot, diff

SNAPSHOT = Snapshot(Path("/w"), "hello", "p", ())
ODD = "p&a\\s.w*[o]^r$d/\"'<ä>"
LINE = st.text(st.sampled_from("ab\\.[]^$/&'\"<>ä😀 \t-"), min_size=4, max_size=12)
VALUE = st.lists(LINE, min_size=1, max_size=3).map("\n".join)
AROUND = st.text(st.sampled_from("abc\\.[]/&'\"ä \t\r\n\x00"), max_size=30)


def secrets_of(**values: str) -> Secrets:
    return Secrets(tuple(Secret(name, value.encode()) for name, value in values.items()), "seal")


@pytest.mark.parametrize(
    ("name", "content", "is_file", "said"),
    [
        ("a b", b"password", False, "no name"),
        ("../x", b"password", True, "no name"),
        ("values-json", b"password", True, "no name"),
        ("x" * 101, b"password", False, "no name"),
        ("pin", b"123", False, "no line of 4"),
        ("lines", b"ab\ncd\r\nefg", False, "no line of 4"),
        ("bytes", b"\xff\xfe\xfd\xfc", False, "no UTF-8"),
        ("long", b"x" * 20_000, False, "over 16384 characters"),
        ("empty", b"", True, "empty or over"),
        ("large", bytes(MAX_FILE_BYTES + 1), True, "empty or over"),
    ],
)
def test_a_secret_that_cannot_be_kept_is_refused_by_name(
    name: str, content: bytes, is_file: bool, said: str
) -> None:
    with pytest.raises(BadSecret, match=said) as refusal:
        Secret(name, content, is_file)
    assert content == b"" or content.decode("latin-1") not in str(refusal.value)


def test_no_more_secrets_are_taken_than_a_filter_can_look_for() -> None:
    one = Secret("one", b"password")
    with pytest.raises(BadSecret, match="one name"):
        Secrets((one, Secret("one", b"other password")))
    with pytest.raises(BadSecret, match="more than 50"):
        Secrets(tuple(Secret(f"s{number}", b"password") for number in range(51)))
    with pytest.raises(BadSecret, match="lines"):
        Secrets((Secret("key", "\n".join(f"line {n}" for n in range(MAX_TEXT_LINES + 1)).encode()),))


def test_a_secret_never_shows_its_content() -> None:
    secrets = Secrets((Secret("storePassword", b"hunter2"), Secret("store", b"KEYS", is_file=True)))
    assert "hunter2" not in repr(secrets) + str(secrets)
    assert "KEYS" not in repr(secrets) + str(secrets)
    assert secrets.names == ("store", "storePassword")


def test_each_line_of_a_text_is_looked_for_as_json_and_xml_write_it_too() -> None:
    needles = needles_of(secrets_of(a='one "line"\r\nab\nthe <second>\n'))
    assert {b'one "line"', rb"one \"line\"", b"one &quot;line&quot;"} <= set(needles)
    assert {b"the <second>", b"the &lt;second&gt;"} <= set(needles)
    assert b"ab" not in needles
    assert [len(needle) for needle in needles] == sorted(map(len, needles), reverse=True)


def test_a_plan_carries_secrets_behind_all_else_and_names_none_in_its_request() -> None:
    secrets = Secrets((Secret("pass", b"hunter2"), Secret("store", b"\0KEYS\n", is_file=True)), "seal")
    edits = Edits(diff({}, SNAPSHOT), {}, "f" * 64, bodies=(("e" * 64, b"body"),))
    plan = make_plan(BuildSpec(), SNAPSHOT, edits, (), {}, None, secrets, "salt")
    head, _, tail = plan.partition(b"\nend\n")
    assert tail == b"body" + b"".join(content for _, content in parts_of(secrets))
    assert b"hunter2" not in head
    assert b"pass" not in next(line for line in head.splitlines() if line.startswith(b"request "))
    assert b"\nsalt salt\n" in head + b"\n"
    for name, left, size in re.findall(rb"secret (\S+) (\d+) (\d+)", head):
        start = len(tail) - int(left)
        assert dict(parts_of(secrets))[name.decode()] == tail[start : start + int(size)]
    document = json.loads(dict(parts_of(secrets))["values-json"])
    assert document == {"values": {"pass": "hunter2"}, "files": ["store"]}


def test_a_request_with_other_secrets_is_another_one_and_without_any_is_as_it_was() -> None:
    entry = Secret("pass", b"hunter2")
    digests = [
        request_digest(BuildSpec(), SNAPSHOT),
        request_digest(BuildSpec(), SNAPSHOT, Secrets((entry,), "one")),
        request_digest(BuildSpec(), SNAPSHOT, Secrets((entry,), "two")),
    ]
    assert len(set(digests)) == 3
    assert request_digest(BuildSpec(), SNAPSHOT, Secrets()) == digests[0]
    assert parts_of(Secrets()) == ()


@pytest.mark.box
@settings(max_examples=40)
@given(
    values=st.lists(VALUE, min_size=1, max_size=3),
    around=st.lists(AROUND, min_size=2, max_size=6),
    data=st.data(),
)
def test_the_phones_filter_leaves_nothing_of_a_secret_however_its_log_is_cut(
    tiny_box: Box, values: list[str], around: list[str], data: st.DataObject
) -> None:
    secrets = secrets_of(**{f"s{number}": value for number, value in enumerate(values)})
    needles = needles_of(secrets)
    log = around[0].encode()
    for text in around[1:]:
        log += data.draw(st.sampled_from(needles)) + text.encode()
    script = tiny_box.root / "data/local/tmp/mask-property"
    script.write_bytes(mask_script(needles))
    sed = ["/system/bin/sed", "-f", "/data/local/tmp/mask-property"]
    command = ["/usr/bin/env", "LC_ALL=C", "chroot", str(tiny_box.root), *sed]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        start = 0
        for cut in sorted(data.draw(st.lists(st.integers(0, len(log)), max_size=5))):
            program.stdin.write(log[start:cut])
            program.stdin.flush()
            start = cut
        program.stdin.write(log[start:])
        program.stdin.close()
        left = program.stdout.read()
    expected = log
    for needle in needles:
        expected = b"\n".join(line.replace(needle, b"***") for line in expected.split(b"\n"))
    assert left == expected
    assert not [needle for needle in needles if needle in left]
