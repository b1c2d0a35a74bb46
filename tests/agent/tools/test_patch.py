"""Unified diffs: applied exactly or refused with the reason."""

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import ToolFault
from agent.tools.patch import apply_hunks, parse_patch

TEXT = "one\ntwo\nthree\nfour\nfive\n"
PATCH = "--- a/x.txt\n+++ b/x.txt\n@@ -2,3 +2,3 @@\n two\n-three\n+3\n four\n"


def apply(text: str, patch: str) -> str:
    return apply_hunks("x.txt", text, parse_patch(patch)[0].hunks)


def test_a_hunk_applies_where_it_says() -> None:
    assert apply(TEXT, PATCH) == "one\ntwo\n3\nfour\nfive\n"


def test_wrong_line_numbers_are_forgiven_where_the_text_stands_once() -> None:
    assert apply("zero\n" * 50 + TEXT, PATCH) == "zero\n" * 50 + "one\ntwo\n3\nfour\nfive\n"


def test_wrong_line_numbers_are_refused_where_the_text_stands_twice() -> None:
    with pytest.raises(ToolFault, match="hunk 1 does not fit near line 2"):
        apply("zero\n" * 3 + TEXT + TEXT, PATCH)


def test_context_that_differs_is_refused_with_what_was_looked_for() -> None:
    with pytest.raises(ToolFault, match="looked for 'two'"):
        apply("one\n2\nthree\nfour\n", PATCH)


def test_windows_line_ends_stay() -> None:
    assert apply(TEXT.replace("\n", "\r\n"), PATCH) == "one\r\ntwo\r\n3\r\nfour\r\nfive\r\n"


def test_a_new_file_a_removed_one_and_a_missing_last_newline() -> None:
    new = parse_patch("--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1,2 @@\n+a\n+b\n")[0]
    assert (new.old, new.new, apply_hunks("new.txt", "", new.hunks)) == (None, "new.txt", "a\nb\n")
    gone = parse_patch("--- a/old.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n")[0]
    assert (gone.new, apply_hunks("old.txt", "a\n", gone.hunks)) == (None, "")
    assert apply("one\ntwo\nthree\nfour", PATCH) == "one\ntwo\n3\nfour"


@pytest.mark.parametrize(
    ("patch", "told"),
    [
        ("nonsense", "no unified diff"),
        ("--- a/x\n", "no `\\+\\+\\+` line follows"),
        ("--- a/x\n+++ b/x\n", "has no hunk"),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n*a\n", "neither space"),
    ],
)
def test_what_is_no_diff_is_refused_with_the_reason(patch: str, told: str) -> None:
    with pytest.raises(ToolFault, match=told):
        parse_patch(patch)


LINES = st.lists(
    st.sampled_from(["a", "b", "c", "", "  d", "-e", "-- e", "+f", "@g"]), min_size=1, max_size=30
)


def test_a_removed_line_that_begins_with_two_dashes_is_no_head_of_a_file() -> None:
    patch = (
        "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n--- old\n+++ new\n b\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-c\n+d\n"
    )
    first, second = parse_patch(patch)
    assert apply_hunks("x", "a\n-- old\nb\n", first.hunks) == "a\n++ new\nb\n"
    assert (second.old, apply_hunks("y", "c\n", second.hunks)) == ("y", "d\n")


@given(LINES, LINES, st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_a_diff_applies_whatever_ends_lines_and_the_text(
    before: list[str], after: list[str], ending: str, is_ended: bool
) -> None:
    diff = "\n".join(difflib.unified_diff(before, after, "a/x", "b/x", lineterm=""))
    if diff and before[-1] and after[-1]:
        text = ending.join(before) + (ending if is_ended else "")
        made = apply(text, diff)
        assert made.replace("\r\n", "\n").removesuffix("\n").split("\n") == after
        assert ending == "\r\n" or "\r" not in made


@given(LINES, LINES)
def test_a_diff_of_any_two_texts_applies(before: list[str], after: list[str]) -> None:
    diff = "\n".join(difflib.unified_diff(before, after, "a/x", "b/x", lineterm=""))
    if diff:
        text = "".join(line + "\n" for line in before)
        assert apply(text, diff) == "".join(line + "\n" for line in after)
