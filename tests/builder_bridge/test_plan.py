"""Plans: what the phone's shell reads holds no user text but as data."""

import re
import subprocess
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from builder_bridge.build import BuildSpec
from builder_bridge.plan import Edits, Whole, encode, make_plan, request_digest
from builder_bridge.workspace.snapshot import Snapshot, SnapshotFile, SnapshotLink, diff, entries_of

A, B = "a" * 64, "b" * 64
SNAPSHOT = Snapshot(
    Path("/w"), "my app", "p1", (SnapshotFile("a b.txt", 1, A), SnapshotFile("run", 2, B, 0o755))
)
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)


@given(TEXT)
def test_encoded_text_has_only_plain_characters(text: str) -> None:
    assert re.fullmatch(r"=(?:[A-Za-z0-9._/@+=,:-]|\\0[0-7]{3})*", encode(text))


@settings(max_examples=25, deadline=None)
@given(st.lists(TEXT, max_size=8))
def test_a_shell_reads_back_what_was_encoded(texts: list[str]) -> None:
    script = r'while read -r field; do printf "%b" "${field#=}"; printf "\0"; done'
    given_lines = "".join(encode(text) + "\n" for text in texts).encode()
    read = subprocess.run(["dash", "-c", script], input=given_lines, capture_output=True, check=True).stdout
    assert read.split(b"\0")[:-1] == [text.encode() for text in texts]


@given(st.lists(TEXT, max_size=3), st.lists(TEXT, max_size=3), TEXT)
def test_every_line_of_a_plan_is_a_word_and_fields_without_blanks(
    tasks: list[str], args: list[str], name: str
) -> None:
    spec = BuildSpec(tasks=tuple(tasks), args=tuple(args))
    plan = make_plan(spec, replace(SNAPSHOT, name=name), Whole(2), ("--offline",), {"route": name}).decode()
    assert plan.endswith("\nend\n")
    for line in plan.splitlines():
        assert re.fullmatch(r"[a-z_]+( [\x21-\x7e]+){0,4}|arg [\x21-\x7e]+( [\x21-\x7e]+)*", line), line


@given(TEXT | st.from_regex(r"[-a =\\]{0,12}", fullmatch=True))
def test_an_argument_is_read_back_from_a_plan_whole(argument: str) -> None:
    lines = make_plan(BuildSpec(tasks=(), args=(argument,)), SNAPSHOT, Whole(2), (), {}).decode().split("\n")
    _, _, field = next(line for line in lines if line.startswith("arg ")).partition(" ")
    assert field == field.strip(" \t"), "a shell's read would take blanks away"
    if field.startswith("="):
        assert re.sub(r"\\0([0-7]{3})", lambda match: chr(int(match[1], 8)), field[1:]).encode("latin-1") == (
            argument.encode()
        )
    else:
        assert field == argument
        assert "\\" not in field


def test_edits_name_what_to_drop_and_what_lay_there_before() -> None:
    before = entries_of(SNAPSHOT)
    after = replace(SNAPSHOT, files=(SnapshotFile("a b.txt", 1, B),), links=(SnapshotLink("run", "a b.txt"),))
    plan = make_plan(BuildSpec(), after, Edits(diff(before, after), before, A), (), {}).decode().splitlines()
    assert f"file =a\\0040b.txt {B} 644 {A}" in plan
    assert "link =run =a\\0040b.txt" in plan
    assert "mode delta" in plan


def test_nothing_to_do_is_said_so() -> None:
    before = entries_of(SNAPSHOT)
    plan = make_plan(BuildSpec(), SNAPSHOT, Edits(diff(before, SNAPSHOT), before, A), (), {})
    assert b"\nmode same\n" in plan


@given(st.lists(st.binary(max_size=20), max_size=5))
def test_contents_behind_a_plan_are_told_by_their_distance_from_its_end(contents: list[bytes]) -> None:
    bodies = tuple((f"{number:064x}", content) for number, content in enumerate(contents))
    plan = make_plan(BuildSpec(), SNAPSHOT, Edits(diff({}, SNAPSHOT), {}, A, bodies), (), {})
    head, _, behind = plan.partition(b"\nend\n")
    places = [line.split()[1:] for line in head.decode().splitlines() if line.startswith("body ")]
    assert [digest for digest, _, _ in places] == [digest for digest, _ in bodies]
    for (_, left, size), content in zip(places, contents, strict=True):
        start = len(plan) - int(left)
        assert plan[start : start + int(size)] == content
    assert behind == b"".join(contents)


def test_the_digest_names_the_request_and_not_the_moment() -> None:
    spec = BuildSpec()
    assert request_digest(spec, SNAPSHOT) == request_digest(BuildSpec(), SNAPSHOT)
    for other in (replace(spec, tasks=("check",)), replace(spec, clean=True), replace(spec, args=("-q",))):
        assert request_digest(other, SNAPSHOT) != request_digest(spec, SNAPSHOT)
    assert request_digest(spec, replace(SNAPSHOT, files=SNAPSHOT.files[:1])) != request_digest(spec, SNAPSHOT)
