"""What a change broke in a file is found before a phone is asked; what was broken before is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.tools.brackets import unclosed
from agent.tools.syntax import faults_of, new_faults

MODERN_KOTLIN = '''
@file:OptIn(Foo::class)
package a.b
fun interface F { fun run(x: Int): String }
context(Logger) fun foo(): Int = 3
data object X /* a /* nested */ comment } */
class A { val s = when (val r = f()) { is B if r.x > 3 -> "}"; in 1..<4 -> '}'; else -> return } // { [
  val t = """raw "$a" ${"x${b["y"]}"} """".trim(); val d = $$"""$${x} ${ {"""; val `odd {name` = '\\u007b'
}
'''
JAVA = """
sealed interface S permits A {}
record A(int x) implements S { A { if (x < 0) throw new IllegalArgumentException("}"); } }
class C { int f(Object o) { return switch (o) { case A(int y) when y > 3 -> 1; default -> { yield 2; } }; } }
"""
GOOD = {
    "a.kt": MODERN_KOTLIN,
    "a.java": JAVA,
    "a.xml": "<?xml version='1.0'?>\n<a><b/></a>\n",
    "build.gradle": "{{{",
}


@pytest.mark.parametrize("name", GOOD)
def test_sound_files_have_no_faults(name: str) -> None:
    assert faults_of(name, GOOD[name].encode()) == []


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.kt", "fun f() {\n  g(1\n}\n", "a.kt:3:1  '}' does not close the '(' of line 2"),
        ("a.kt", "fun f() {\n", "a.kt:1:9  '{' is never closed"),
        ("a.kts", 'val s = "open\n', "a.kts:1:9  the string is never closed"),
        ("a.kt", "fun f() { } }\n", "a.kt:1:13  '}' closes nothing"),
        ("a.kt", "/* open\n", "a.kt:1:1  the comment is never closed"),
        ("a.kt", 'val s = "${f(}"\n', "a.kt:1:14  '}' does not close the '(' of line 1"),
        ("a.java", "class A { void f() { g(1) } }", "a.java:1:22  does not parse: g(1)"),
        ("a.xml", "<a><b></a>", "a.xml:1:9  mismatched tag"),
    ],
)
def test_a_broken_file_is_told_with_its_place(name: str, text: str, told: str) -> None:
    assert faults_of(name, text.encode()) == [told]


def test_only_faults_that_a_change_brought_in_count() -> None:
    assert new_faults("a.xml", b"<a>", b"<a><b>") == []
    assert new_faults("a.xml", b"<a/>", b"<a>") == ["a.xml:1:4  no element found"]
    assert new_faults("a.xml", None, b"<a>") == ["a.xml:1:4  no element found"]


@given(st.text(alphabet="()[]{}\"'$`/*\\\n ax", max_size=60))
def test_any_text_is_scanned_to_its_end(text: str) -> None:
    told = unclosed(text)
    assert told is None or int(told.split(":")[0]) <= text.count("\n") + 1


@given(
    st.recursive(
        st.sampled_from(["a", '"s"', "'c'", "1"]),
        lambda inner: st.lists(inner, max_size=4).map(lambda parts: "(" + ", ".join(parts) + ")"),
        max_leaves=20,
    )
)
def test_nested_calls_close(text: str) -> None:
    assert unclosed(f"val x = f{text}") is None
