"""The tools that every run has."""

from pathlib import Path

from agent.tools.building import BuildDesk, BuildTools
from agent.tools.confine import Workspace
from agent.tools.edits import Edits
from agent.tools.files import FileTools
from agent.tools.output import OutputStore, output_tools
from agent.tools.search import search_tools
from agent.tools.tool import AnyTool


def workspace_tools(
    workspace: Path, run_folder: Path, desk: BuildDesk, store: OutputStore
) -> tuple[AnyTool, ...]:
    """Give the tools over a workspace and its builder; what they keep lies in the run's folder."""
    confined = Workspace(workspace)
    edits = Edits(confined, run_folder / "edits")
    return (
        *BuildTools(desk).tools(),
        *FileTools(confined, edits).tools(),
        *search_tools(confined),
        *output_tools(store),
    )
