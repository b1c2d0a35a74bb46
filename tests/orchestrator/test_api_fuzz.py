"""A slice of what `python -m tests.orchestrator.api_fuzz.run --max-examples 200` asks."""

import re
from pathlib import Path

import pytest

from tests.orchestrator.api_fuzz.run import fuzz_api


@pytest.mark.slow
def test_schemathesis_finds_nothing_in_the_api(tmp_path: Path) -> None:
    done = fuzz_api(tmp_path, ["--seed", "1", "--max-examples", "4"])
    assert done.returncode == 0, done.stdout[-8000:]
    counted = re.search(r"(\d+) generated, (\d+) passed", done.stdout)
    assert counted is not None, done.stdout[-8000:]
    assert counted[1] == counted[2]
    assert int(counted[1]) > 500
