"""Recorded logs with their right answer, whole and under every cut."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from builder_bridge.log.problem import LogReport, Problem
from builder_bridge.log.reader import LogReader

CASES = sorted((Path(__file__).parents[2] / "cases" / "buildlog").glob("*.json"))
SEEDED_CUTS = 50
SEEDED_CUTS_OF_OUR_OWN = 4
LARGE_BYTES, LARGE_STEP = 8_000, 13


def read_case(path: Path) -> dict[str, Any]:
    case: dict[str, Any] = json.loads(path.read_text())
    return case


def read_in_pieces(pieces: list[bytes]) -> LogReport:
    reader = LogReader()
    for piece in pieces:
        reader.feed(piece)
    return reader.close()


def differences(report: LogReport, expect: dict[str, Any]) -> list[str]:
    """Say in which ways a report is not the expected one; the same rules as in the format's page."""
    wrong = [
        f"{name}: {got!r}, expected {expect[name]!r}"
        for name, got in (
            ("outcome", str(report.outcome)),
            ("failed_tasks", list(report.failed_tasks)),
            ("kind", report.kind and str(report.kind)),
        )
        if got != expect[name]
    ]
    seen = [place(problem) for problem in report.problems]
    wanted = [
        tuple(problem.get(key) for key in ("severity", "tool", "file", "line", "column"))
        for problem in expect["problems"]
    ]
    if seen != wanted:
        wrong.append(
            f"problems: {[(*place(p), p.gist) for p in report.problems]}, expected {expect['problems']}"
        )
    wrong += [
        f"message {problem.message!r} lacks {want['message_contains']!r}"
        for problem, want in zip(report.problems, expect["problems"], strict=False)
        if want["message_contains"] not in problem.message
    ]
    return wrong


def place(problem: Problem) -> tuple[str, str, str | None, int | None, int | None]:
    return (str(problem.severity), str(problem.tool), problem.file, problem.line, problem.column)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_log_gives_the_expected_report(path: Path) -> None:
    case = read_case(path)
    assert differences(read_in_pieces([case["log"].encode()]), case["expect"]) == []


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_the_report_is_the_same_byte_by_byte(path: Path) -> None:
    log = read_case(path)["log"].encode()
    step = 1 if len(log) < LARGE_BYTES else LARGE_STEP
    whole = read_in_pieces([log])
    assert read_in_pieces([log[i : i + step] for i in range(0, len(log), step)]) == whole


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_the_report_is_the_same_at_any_cuts(path: Path) -> None:
    case = read_case(path)
    log = case["log"].encode()
    whole = read_in_pieces([log])
    for seed in range(SEEDED_CUTS_OF_OUR_OWN if case["source"] == "own" else SEEDED_CUTS):
        chance = random.Random(seed)
        places = sorted(chance.randrange(len(log) + 1) for _ in range(chance.randrange(1, 12)))
        pieces = [log[a:b] for a, b in zip([0, *places], [*places, len(log)], strict=True)]
        assert read_in_pieces(pieces) == whole


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_problems_come_out_once_and_as_they_appear(path: Path) -> None:
    log = read_case(path)["log"].encode()
    reader = LogReader()
    early = [problem for line in log.splitlines(keepends=True) for problem in reader.feed(line)]
    report = reader.close()
    assert len(set(early)) == len(early)
    assert set(early) <= set(report.problems)
