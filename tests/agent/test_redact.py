"""Secrets do not get into what is kept."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.redact import Redactor


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-abcdefghijklmnop1234",
        "ghp_abcdefghijklmnopqrstuvwxyz0123",
        "AIzaSyA-abcdefghijklmnopqrstuvwxyz01234",
        "AKIAABCDEFGHIJKLMNOP",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
        "my-own-secret",
    ],
)
def test_a_known_secret_and_what_looks_like_one_are_replaced(secret: str) -> None:
    redactor = Redactor(["my-own-secret", "my-own"])
    assert redactor.text(f"key is {secret}, ok") == "key is [redacted], ok"
    assert redactor.bytes(f"é {secret}".encode()) == "é [redacted]".encode()
    assert redactor.json({"a": [secret, 1, None]}) == {"a": ["[redacted]", 1, None]}


@pytest.mark.parametrize(
    "text", ["sk-short", "task-description-of-the-project", "a commit 0123456789abcdef", ""]
)
def test_ordinary_text_stays(text: str) -> None:
    assert Redactor(["abc"]).text(text) == text


def test_opaque_data_of_a_provider_is_not_touched() -> None:
    value = {"provider_data": {"signature": "sk-proj-abcdefghijklmnop1234"}}
    assert Redactor().json(value) == value


def test_heads_that_carry_keys_lose_their_value() -> None:
    heads = [("Authorization", "Bearer x"), ("x-api-key", "y"), ("date", "today")]
    assert Redactor().headers(heads) == {
        "Authorization": "[redacted]",
        "x-api-key": "[redacted]",
        "date": "today",
    }


PIECES = [
    "sk-",
    "ghp_",
    "AIza",
    "AKIA",
    "ABCDEFGHIJKLMNOP",
    "a" * 31,
    "eyJ" + "x" * 10,
    ".",
    "Bearer ",
    " ",
    "\n",
]
PIECES += [
    "-----BEGIN RSA PRIVATE KEY-----",
    "-----END RSA PRIVATE KEY-----",
    'my "own" sécret',
    "\t",
    "\udce9",
]


@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
def test_what_may_hold_no_secret_in_json_holds_none(text: str) -> None:
    redactor, value = Redactor(['my "own" sécret']), {"a": [text]}
    for is_ascii in (True, False):
        line = json.dumps(value, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass")
        assert redactor.may_hold_secret(line) or redactor.json(value) == value


@pytest.mark.parametrize("before", ["\n", "\\n", "\t", "é", "\udce9", "日本 "])
def test_a_secret_is_found_whatever_stands_before_it(before: str) -> None:
    redactor, secret = Redactor(), "ghp_abcdefghijklmnopqrstuvwxyz0123"
    value = {"text": f"{before} {secret}"}
    assert redactor.may_hold_secret(json.dumps(value).encode())
    assert redactor.json(value) == {"text": f"{before} [redacted]"}
