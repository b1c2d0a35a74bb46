"""Let coverage lead a search, where atheris is installed (there are wheels for Linux on amd64)."""

import importlib
import importlib.util
import io
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any

IS_AVAILABLE = importlib.util.find_spec("atheris") is not None
MAX_INPUT_BYTES = 8192


@contextmanager
def watched(*packages: str) -> Iterator[None]:
    """Watch which branches the modules imported within take; nothing happens where atheris is missing."""
    if not IS_AVAILABLE:
        yield
        return
    # It names each module on stderr.
    with redirect_stderr(io.StringIO()), _atheris().instrument_imports(include=list(packages)):
        yield


def search(check: Callable[[bytes], None], seeds: Iterable[bytes], seconds: float, seed: int) -> int:
    """Mutate the seeds towards new branches for so many seconds; gives an exit code.

    Whatever `check` raises ends it at once with a traceback, the input in a file, and a code above 0.
    Where atheris is missing nothing is searched. It runs in a process of its own, since it ends that.
    """
    if not IS_AVAILABLE:
        return 0
    with tempfile.TemporaryDirectory() as folder:
        for number, data in enumerate(seeds):
            Path(folder, str(number)).write_bytes(data[:MAX_INPUT_BYTES])
        options = [f"-max_total_time={max(1, round(seconds))}", f"-seed={seed % (1 << 31) or 1}"]
        options += [f"-max_len={MAX_INPUT_BYTES}", "-verbosity=0", "-print_final_stats=1"]
        options += [f"-artifact_prefix={tempfile.gettempdir()}/fuzz-"]
        sys.stdout.flush()
        with tempfile.TemporaryFile() as said:
            child = os.fork()
            if not child:
                os.dup2(said.fileno(), 2)
                atheris = _atheris()
                atheris.Setup([sys.argv[0], *options, folder], check)
                atheris.Fuzz()
                os._exit(0)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            said.seek(0)
            text = said.read().decode("utf-8", "replace")
        tried = re.search(r"number_of_executed_units: (\d+)", text)
        print(
            text if code else f"led by coverage: {tried[1] if tried else 'some'} inputs, nothing found",
            flush=True,
        )
        return code


def share(seconds: float) -> float:
    """Give the part of the time that is for other ways of searching."""
    return seconds / 2 if IS_AVAILABLE else seconds


def _atheris() -> Any:
    return importlib.import_module("atheris")
