"""Secrets do not get into what is kept."""

import pytest

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
