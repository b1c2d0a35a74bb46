"""Small workspaces for fake phones."""

import json
from pathlib import Path
from typing import Any


def make_workspace(folder: Path, text: str = "one", **plan: Any) -> Path:
    """Write a workspace; `plan` says what its build does on a fake phone."""
    (folder / "app/src").mkdir(parents=True, exist_ok=True)
    (folder / "build.gradle").write_text("// root")
    (folder / "app/src/Main.java").write_text(f"class Main {{ /* {text} */ }}")
    (folder / "plan.json").write_text(json.dumps(plan))
    return folder
