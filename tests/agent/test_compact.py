"""Folding: what goes first, and what never happens to a call and its result."""

from hypothesis import given
from hypothesis import strategies as st

from agent.compact import Fold, apply_fold, estimate_tokens, plan_fold
from agent.message import ConversationItem, Message, TextPart, ToolCall, ToolResult, UserMessage


def turn(number: int, tool: str = "read_file", size: int = 2000) -> tuple[ConversationItem, ...]:
    call = ToolCall(f"c{number}", tool, {"path": f"f{number}"})
    return Message((TextPart(f"turn {number}"), call)), ToolResult(
        call.id, tool, f"result {number}\n" + "x" * size
    )


def conversation(*tools: str) -> tuple[ConversationItem, ...]:
    items: list[ConversationItem] = [UserMessage("fix the app")]
    for number, tool in enumerate(tools):
        items += turn(number, tool)
    return tuple(items)


def is_whole(items: tuple[ConversationItem, ...]) -> bool:
    """Every call has its result right behind its message, and no result stands alone."""
    waiting: list[str] = []
    for item in items:
        if isinstance(item, ToolResult):
            if not waiting or waiting.pop(0) != item.call_id:
                return False
        elif waiting:
            return False
        if isinstance(item, Message):
            waiting = [call.id for call in item.tool_calls]
    return not waiting


def test_a_conversation_that_fits_is_left_alone() -> None:
    assert plan_fold(conversation("read_file"), used_tokens=74_000, allowed_tokens=100_000) is None


def test_superseded_digests_fold_first_and_the_latest_stays_whole() -> None:
    items = conversation(*["build_gradle_project"] * 8, *["read_file"] * 4)
    fold = plan_fold(items, used_tokens=7_600, allowed_tokens=10_000)
    assert fold == Fold(digests=True)
    folded = apply_fold(items, fold)
    results = [item.content for item in folded if isinstance(item, ToolResult)]
    assert results[0] == "result 0\n[folded: a later build superseded this digest]"
    assert results[7].endswith("x" * 2000)


def test_turns_fold_to_lines_and_the_assignment_stays() -> None:
    items = conversation(*["read_file"] * 40)
    fold = plan_fold(items, used_tokens=100_000, allowed_tokens=1_000)
    folded = apply_fold(items, fold or Fold())
    assert folded[0] == UserMessage("fix the app")
    outline = folded[1]
    assert isinstance(outline, UserMessage)
    assert "- you called read_file {'path': 'f3'}\n  → result 3" in outline.text
    assert len([item for item in folded if isinstance(item, Message)]) == 4


def test_lines_of_an_earlier_fold_are_kept_in_the_next() -> None:
    items = conversation(*["read_file"] * 10)
    once = apply_fold(items, Fold(turns_before=9))
    twice = apply_fold(once, Fold(turns_before=4))
    assert isinstance(twice[1], UserMessage)
    assert "you called read_file {'path': 'f0'}" in twice[1].text
    assert "you called read_file {'path': 'f4'}" in twice[1].text


@given(
    st.lists(st.sampled_from(["read_file", "build_gradle_project", "write_file"]), max_size=30),
    st.integers(1, 200_000),
    st.integers(100, 100_000),
)
def test_no_fold_parts_a_call_from_its_result_or_makes_things_longer(
    tools: list[str], used: int, allowed: int
) -> None:
    items = conversation(*tools)
    fold = plan_fold(items, used_tokens=used, allowed_tokens=allowed)
    if fold is not None:
        folded = apply_fold(items, fold)
        assert is_whole(folded)
        assert estimate_tokens(folded) < estimate_tokens(items)
        assert folded[0] == items[0]


@given(
    kinds=st.lists(st.sampled_from(["read_file", "build_gradle_project", "say"]), max_size=60),
    used=st.integers(80, 400),
    size=st.integers(0, 3000),
)
def test_a_fold_comes_down_to_half_or_takes_all_it_may(kinds: list[str], used: int, size: int) -> None:
    items: list[ConversationItem] = [UserMessage("fix the app")]
    for number, kind in enumerate(kinds):
        items += [UserMessage(f"word {number}")] if kind == "say" else turn(number, kind, size)
    fold = plan_fold(tuple(items), used_tokens=used, allowed_tokens=100)
    if fold is None:
        return
    before, after = estimate_tokens(items), estimate_tokens(apply_fold(tuple(items), fold))
    starts = [position for position, item in enumerate(items) if isinstance(item, Message)]
    can_fold_more = len(starts) > 4 and fold.turns_before < starts[-4]
    assert after < before
    assert after <= before * 50 / used + 50 or not can_fold_more
