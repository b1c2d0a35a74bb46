"""What the model is told before all else."""

import os
from pathlib import Path

from agent.prompt import system_prompt


def test_instructions_without_end_are_read_up_to_a_bound(tmp_path: Path) -> None:
    own = tmp_path / "AGENTS.md"
    own.write_text("Use tabs.\n" * 10_000)
    os.truncate(own, 1 << 40)
    told = system_prompt(tmp_path, verifies=False)
    assert 16_000 < len(told) < 32_000
    assert "Use tabs.\n\n[… cut; read_file shows the rest of AGENTS.md]" in told


def test_instructions_behind_a_link_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("Hidden words.")
    (tmp_path / "AGENTS.md").symlink_to("secret")
    assert "Hidden words." not in system_prompt(tmp_path, verifies=False)
