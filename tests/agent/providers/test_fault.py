"""Error bodies of many providers, judged: what happened, and how long to wait."""

import json
from pathlib import Path

import pytest

from agent.errors import ProviderOverloaded
from agent.message import JsonObject
from agent.providers.catalogue import KNOWN
from agent.providers.fault import judge

NOW_S = 1_796_000_000.0

CASES = json.loads((Path(__file__).parents[2] / "cases" / "provider_faults.json").read_text())
"""What providers answered, with the class of fault it means and the wait it asks for."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['provider']}-{case['status']}")
def test_an_error_body_is_judged_by_what_it_says(case: JsonObject) -> None:
    codes = KNOWN[case["provider"]].errors
    fault = judge(case["status"], {}, case["body"].encode(), codes, now_s=NOW_S)
    assert (type(fault).__name__, fault.retry_after_s) == (case["fault"], case["wait_s"])


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "1500", "retry-after": "7"}, 1.5),
        ({"retry-after": "Tue, 01 Dec 2026 01:13:20 GMT"}, 87_600.0),
        ({"retry-after": "Mon, 01 Jan 2001 00:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
    ],
)
def test_the_wait_is_taken_from_the_head_first(headers: dict[str, str], wait_s: float | None) -> None:
    fault = judge(429, headers, b"{}", KNOWN["openai"].errors, now_s=NOW_S)
    assert fault.retry_after_s == pytest.approx(wait_s)


@pytest.mark.parametrize(
    ("text", "wait_s"),
    [
        ("Please try again in 1m30.5s", 90.5),
        ("Please try again in 250ms", 0.25),
        ("retry after 2 hours", 7200.0),
        ("your limit will reset in 3h 20m", 12_000.0),
        ("try again later", None),
        ("in 5s everything was fine", None),
    ],
)
def test_a_wait_that_stands_only_in_the_text_is_found(text: str, wait_s: float | None) -> None:
    body = f'{{"error":{{"message":"{text}"}}}}'.encode()
    assert judge(429, {}, body, KNOWN["openai"].errors, now_s=NOW_S).retry_after_s == wait_s


def test_a_fault_says_who_what_and_the_request_id() -> None:
    body = b'{"error":{"code":"1302","message":"High concurrency"}}'
    fault = judge(429, {"x-request-id": "r-1"}, body, KNOWN["zai"].errors, now_s=NOW_S)
    assert (str(fault), fault.request_id) == ("status 429 (1302): High concurrency", "r-1")


@pytest.mark.parametrize(
    "body", [b"\xff\xfe", b"[" * 1000, b"null", b'{"error":null}', b'{"error":{"code":{}}}', b"[]"]
)
def test_a_body_of_any_shape_is_judged_without_raising(body: bytes) -> None:
    assert isinstance(judge(500, {}, body, KNOWN["openai"].errors, now_s=NOW_S), ProviderOverloaded)
