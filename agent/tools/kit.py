"""The tools that every run has."""

from pathlib import Path

from agent.tools.building import BuildDesk, BuildTools
from agent.tools.confine import Workspace
from agent.tools.edits import Edits
from agent.tools.files import FileTools
from agent.tools.git import Author, Git
from agent.tools.output import OutputStore, output_tools
from agent.tools.search import ripgrep, search_tools
from agent.tools.syntax import new_faults
from agent.tools.tool import AnyTool


def workspace_tools(
    workspace: Path, run_folder: Path, desk: BuildDesk, store: OutputStore, author: Author
) -> tuple[AnyTool, ...]:
    """Give the tools over a workspace and its builder; what they keep lies in the run's folder."""
    confined = Workspace(workspace)
    edits = Edits(confined, run_folder / "edits")
    desk.find_syntax_faults = lambda: syntax_faults(confined, edits)
    return (
        *BuildTools(desk).tools(),
        *FileTools(confined, edits).tools(),
        *search_tools(confined, ripgrep()),
        *Git(confined, author).tools(),
        *output_tools(store),
    )


def syntax_faults(workspace: Workspace, edits: Edits) -> list[str]:
    """Give what this run broke in the files that it changed."""
    return [
        fault
        for path in edits.changed_paths()
        for fault in new_faults(workspace.name(path), edits.original(path), path.read_bytes())
    ]
