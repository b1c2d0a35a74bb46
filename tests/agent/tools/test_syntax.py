"""What a change broke in a file is found before a phone is asked; what was broken before is not."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.tools.brackets import Language, unclosed
from agent.tools.syntax import faults_of, new_faults

CORPUS = Path(__file__).parents[2] / "cases/syntax"
"""What compilers take; `Modern.java` went through javac 21."""
VALID = sorted(path.relative_to(CORPUS).as_posix() for path in CORPUS.rglob("*") if path.is_file())
SOUND = {
    "a.java": "class A { int f() { return x/2/3; } }\x1a",
    "b.java": "class A \\u007b \\u007d",
    "c.java": 'class A { String s = "\\\\"; char c = \'\\\\\'; } // "',
    "d.java": 'class A { String s = """\n  \\""" " "" \\\\"""; }',
    "e.java": "// one\rclass A { /* \r } */ }\r",
    "f.java": "",
    "a.kt": 'val a = "$"; val b = "$$"; val c = "${"$"}"; val d = "${\'}\'}"',
    "b.kt": "// one\rval a = 1 /* \r } */\r",
    "c.kt": "class A { } // }",
    "d.kt": 'val a = $$$"""$$${"}"} $${ ${"""',
    "e.kt": "val a = b@{ x -> x } // it's",
    "src/main/resources/Broken.java": "class {",
    "app/src/main/assets/broken.xml": "<a>",
    "app/src/main/res/raw-en/broken.xml": "<a>",
    "config/lint.xml": "<a>",
    "res/values/a.xml": "<?xml version='1.0' encoding='x-unknown'?><a/>",
    "build.gradle": "{{{",
}


@pytest.mark.parametrize("name", VALID)
@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_a_file_that_the_compiler_takes_is_never_refused(name: str, ends: str) -> None:
    text = (CORPUS / name).read_text().replace("\n", ends)
    for data in (text.encode(), ("\ufeff" + text).encode(), text.replace("utf-8", "utf-16").encode("utf-16")):
        assert faults_of(name, data) == []


@pytest.mark.parametrize("name", SOUND)
def test_sound_files_and_those_that_nobody_compiles_have_no_faults(name: str) -> None:
    assert faults_of(name, SOUND[name].encode()) == []


@pytest.mark.parametrize("name", ["Modern.java", "Modern.kt", "build.gradle.kts", "res/layout/main.xml"])
def test_a_file_that_was_cut_is_told(name: str) -> None:
    data = (CORPUS / name).read_bytes()
    cuts = range(len(data) // 3, len(data) * 2 // 3, 40)
    told = [bool(faults_of(name, data[:cut])) for cut in cuts]
    assert sum(told) > len(told) / 2


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.kt", "fun f() {\n  g(1\n}\n", "a.kt:3:1  '}' does not close the '(' of line 2"),
        ("a.kt", "fun f() {\n", "a.kt:1:9  '{' is never closed"),
        ("a.kts", 'val s = "open\n', "a.kts:1:9  the string is never closed"),
        ("a.kt", "fun f() { } }\n", "a.kt:1:13  '}' closes nothing"),
        ("a.kt", "/* open\n", "a.kt:1:1  the comment is never closed"),
        ("a.kt", 'val s = "${f(}"\n', "a.kt:1:14  '}' does not close the '(' of line 1"),
        ("a.java", "class A { void f() { g(1; } }", "a.java:1:27  '}' does not close the '(' of line 1"),
        ("a.java", 'class A { String s = "open; }\n', "a.java:1:22  the string is never closed"),
        ("a.java", 'class A { String s = """\n open; }\n', "a.java:1:22  the string is never closed"),
        ("a.java", "class A { /* /* */ */ /* open }", "a.java:1:23  the comment is never closed"),
        ("res/values/a.xml", "<a><b></a>", "res/values/a.xml:1:9  mismatched tag"),
    ],
)
def test_a_broken_file_is_told_with_its_place(name: str, text: str, told: str) -> None:
    assert faults_of(name, text.encode()) == [told]


def test_only_faults_that_a_change_brought_in_count() -> None:
    name = "app/AndroidManifest.xml"
    assert new_faults(name, b"<a>", b"<a><b>") == []
    assert new_faults(name, b"<a/>", b"<a>") == [f"{name}:1:4  no element found"]
    assert new_faults(name, None, b"<a>") == [f"{name}:1:4  no element found"]


@given(st.text(alphabet="()[]{}\"'$`/*\\\n ax", max_size=60))
def test_any_text_is_scanned_to_its_end(text: str) -> None:
    for language in Language:
        told = unclosed(text, language)
        assert told is None or int(told.split(":")[0]) <= text.count("\n") + 1


@given(
    st.recursive(
        st.sampled_from(["a", '"s"', "'c'", "1"]),
        lambda inner: st.lists(inner, max_size=4).map(lambda parts: "(" + ", ".join(parts) + ")"),
        max_leaves=20,
    )
)
def test_nested_calls_close(text: str) -> None:
    for language in Language:
        assert unclosed(f"val x = f{text}", language) is None
