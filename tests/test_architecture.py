"""The laws of the tree: who imports whom, what does no I/O, how large things may be."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("builder_bridge", "agent", "orchestrator")
MAY_IMPORT = {
    "builder_bridge": set(),
    "agent": {"builder_bridge"},
    "orchestrator": {"agent", "builder_bridge"},
}
MAX_FILE_LINES = 300
MAX_FUNCTION_LINES = 60

SANS_IO = [
    "builder_bridge/errors.py",
    "builder_bridge/build.py",
    "builder_bridge/death.py",
    "builder_bridge/handoff.py",
    "builder_bridge/health.py",
    "builder_bridge/outcome.py",
    "builder_bridge/plan.py",
    "builder_bridge/ranges.py",
    "builder_bridge/reports.py",
    "builder_bridge/secret.py",
    "builder_bridge/workspace/preflight.py",
    "builder_bridge/adb/announcements.py",
    "builder_bridge/adb/compression.py",
    "builder_bridge/adb/events.py",
    "builder_bridge/adb/pace.py",
    "builder_bridge/adb/packets.py",
    "builder_bridge/adb/protocol.py",
    "builder_bridge/adb/sync_packets.py",
    "builder_bridge/log/**/*.py",
    "builder_bridge/prefix/gradle_module.py",
    "builder_bridge/prefix/pom.py",
    "builder_bridge/prefix/resolve.py",
    "agent/message.py",
    "agent/errors.py",
    "agent/decide.py",
    "agent/budget.py",
    "agent/retry.py",
    "agent/compact.py",
    "agent/repeat.py",
    "agent/tools/brackets.py",
    "agent/tools/syntax.py",
    "orchestrator/forecast.py",
    "agent/wire/**/*.py",
    "agent/providers/**/*.py",
]
IO_MODULES = {
    "anyio",
    "asyncio",
    "datetime",
    "httpx",
    "logging",
    "os",
    "pathlib",
    "random",
    "secrets",
    "selectors",
    "shutil",
    "signal",
    "socket",
    "ssl",
    "structlog",
    "subprocess",
    "sys",
    "tempfile",
    "threading",
    "time",
}
DISTRIBUTIONS = {  # of imports that are not called as what brings them
    "mcp_types": "mcp",
    "opentelemetry": "opentelemetry-sdk",
    "pydantic_core": "pydantic",
    "re2": "google-re2",
    "starlette": "fastapi",
    "usb1": "adb-shell",
}
PURE_NAMES = {("pathlib", "PurePosixPath"), ("datetime", "timedelta")}
NAMELESS = {"utils", "util", "common", "helpers", "manager", "base", "misc", "core", "services"}


def modules() -> list[Path]:
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def sans_io_modules() -> list[Path]:
    return sorted({path for pattern in SANS_IO for path in ROOT.glob(pattern)})


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imports_of(path: Path) -> list[tuple[str, str | None]]:
    """Give (module, name) for each import, relative ones resolved to full names."""
    found: list[tuple[str, str | None]] = []
    package = path.relative_to(ROOT).with_suffix("").parts
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [(alias.name, None) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = ".".join(package[: len(package) - node.level]) if node.level else ""
            module = ".".join(part for part in (start, node.module or "") if part)
            found += [(module, alias.name) for alias in node.names]
    return found


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_imports_go_only_down_the_stack(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0]
    foreign = {module.split(".")[0] for module, _ in imports_of(path)} & set(PACKAGES) - {package}
    assert foreign <= MAY_IMPORT[package]


@pytest.mark.parametrize("path", [p for p in modules() if name_of(p).startswith("agent/")], ids=name_of)
def test_in_the_agent_only_the_build_tool_knows_the_bridge(path: Path) -> None:
    knows = any(module.split(".")[0] == "builder_bridge" for module, _ in imports_of(path))
    assert not knows or name_of(path) == "agent/tools/build.py"


@pytest.mark.parametrize("path", sans_io_modules(), ids=name_of)
def test_sans_io_files_do_no_io(path: Path) -> None:
    forbidden = [
        (module, name)
        for module, name in imports_of(path)
        if module.split(".")[0] in IO_MODULES and (module, name) not in PURE_NAMES
    ]
    assert not forbidden
    for node in ast.walk(ast.parse(path.read_text())):
        assert not isinstance(node, ast.AsyncFunctionDef), f"async def at line {node.lineno}"
        opens = (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in {"open", "print", "input"}
        )
        assert not opens, f"I/O at line {getattr(node, 'lineno', '?')}"


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_files_and_functions_stay_small(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= MAX_FILE_LINES
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            assert lines <= MAX_FUNCTION_LINES, f"{node.name} has {lines} lines"


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_names_say_something(path: Path) -> None:
    assert not {path.stem, *path.relative_to(ROOT).parent.parts} & NAMELESS


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_what_is_imported_is_declared_for_those_who_only_run_it(path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {name: needs for name, needs in project["optional-dependencies"].items() if name != "dev"}
    declared = {
        re.split(r"[\[<>=;]", need)[0] for need in sum(extras.values(), start=project["dependencies"])
    }
    tops = {module.split(".")[0] for module, _ in imports_of(path)}
    foreign = tops - set(sys.stdlib_module_names) - set(PACKAGES)
    assert {DISTRIBUTIONS.get(top, top.replace("_", "-")) for top in foreign} <= declared
