"""Rules of approval hold for the files that a call really touches, however the model writes their names."""

from pathlib import Path

import pytest

from agent.approval import Gate, Mode, Rule, Verdict
from agent.message import JsonObject, ToolCall
from agent.repeat import RepeatGuard
from agent.toolbox import Done, Journal, Toolbox
from agent.tools.building import BuildDesk
from agent.tools.git import Author
from agent.tools.kit import workspace_tools
from agent.tools.output import OutputStore
from tests.fakes_provider import FolderBuilder, Watcher

pytestmark = pytest.mark.anyio
CLOSED = Rule(Verdict.DENY, "*", {"path": "private/*"})
PATCH = "--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-old\n+new\n"


async def results(folder: Path, rules: tuple[Rule, ...], *calls: tuple[str, JsonObject]) -> list[str]:
    """Run calls one after the other in a workspace with a file that is private and a link to it."""
    workspace = folder / "w"
    (workspace / "private").mkdir(parents=True)
    (workspace / "private/a.txt").write_text("old\n")
    (workspace / "public").mkdir()
    (workspace / "public/a.txt").write_text("old\n")
    (workspace / "public/link").symlink_to("../private/a.txt")
    (workspace / "side").symlink_to("private")
    store = OutputStore(folder / "outputs")
    desk = BuildDesk(FolderBuilder(folder / "b"), workspace)
    done: list[Done] = []
    tools = workspace_tools(workspace, folder / "run", desk, store, Author())
    journal = Journal(lambda call_id, note: None, done.append)
    box = Toolbox(tools, Gate(Mode.YES, rules), store, RepeatGuard(), journal, Watcher())
    for number, (name, arguments) in enumerate(calls):
        await box.run((ToolCall(f"c{number}", name, arguments),), {})
    return [each.result.content for each in done]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read_file", {"path": "private/a.txt"}),
        ("read_file", {"path": "./private/a.txt"}),
        ("read_file", {"path": "private//a.txt"}),
        ("read_file", {"path": "private\\a.txt"}),
        ("read_file", {"path": "{root}/private/a.txt"}),
        ("read_file", {"path": "public/link"}),
        ("read_file", {"path": "side/a.txt"}),
        ("functions.read_file", {"path": "private/a.txt"}),
        ("write_file", {"path": "private/new/b.txt", "content": "x"}),
        ("edit_file", {"path": "public/link", "old": "old", "new": "x"}),
        ("search_text", {"pattern": "o", "path": "side/a.txt"}),
        ("apply_patch", {"patch": PATCH.format("private/a.txt")}),
        ("apply_patch", {"patch": PATCH.format("public/a.txt") + PATCH.format("public/link")}),
        ("apply_patch", {"patch": "--- a/private/a.txt\n+++ b/public/b.txt\n@@ -1 +1 @@\n-old\n+new\n"}),
    ],
)
async def test_a_denied_path_is_denied_under_every_name(
    tmp_path: Path, tool: str, arguments: JsonObject
) -> None:
    arguments = {name: value.replace("{root}", str(tmp_path / "w")) for name, value in arguments.items()}
    [result] = await results(tmp_path, (CLOSED,), (tool, arguments))
    assert "is not allowed here" in result
    assert (tmp_path / "w/private/a.txt").read_text() == "old\n"
    assert (tmp_path / "w/public/a.txt").read_text() == "old\n"


async def test_a_denied_tool_is_denied_under_every_decoration(tmp_path: Path) -> None:
    wish = {"path": "public/a.txt", "content": "x"}
    names = ("write_file", "functions.write_file", "default_api:write_file", "write_file<|channel|>x")
    told = await results(tmp_path, (Rule(Verdict.DENY, "write_file"),), *[(name, wish) for name in names])
    assert all("is not allowed here" in each for each in told)


async def test_an_undo_is_judged_by_the_files_it_changes_and_an_allowed_patch_by_all_of_its_files(
    tmp_path: Path,
) -> None:
    rules = (
        Rule(Verdict.ALLOW, "apply_patch", {"path": "public/*"}),
        Rule(Verdict.DENY, "apply_patch"),
        Rule(Verdict.DENY, "undo_edit", {"path": "public/a*"}),
    )
    both = PATCH.format("public/a.txt") + PATCH.format("private/a.txt")
    told = await results(
        tmp_path,
        rules,
        ("undo_edit", {}),
        ("apply_patch", {"patch": both}),
        ("apply_patch", {"patch": PATCH.format("public/a.txt")}),
        ("undo_edit", {}),
    )
    assert ["no change of this run" in told[0], "not allowed here" in told[1]] == [True, True]
    assert ["applied" in told[2], "not allowed here" in told[3]] == [True, True]
    assert (tmp_path / "w/public/a.txt").read_text() == "new\n"
