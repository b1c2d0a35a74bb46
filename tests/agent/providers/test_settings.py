"""Providers from settings: added and overridden without code, refused with the place that is wrong."""

from typing import Any

import pytest

from agent.errors import SettingsFault
from agent.message import Dialect
from agent.providers.catalogue import KNOWN, choose
from agent.providers.settings import with_settings


def test_a_new_provider_needs_only_an_address_and_a_dialect() -> None:
    own = with_settings({"Mine": {"base_url": "https://llm.example/v1", "dialect": "openai-chat"}})["mine"]
    assert choose(own, "m").url == "https://llm.example/v1/chat/completions"
    assert own.key_optional


def test_what_the_settings_leave_out_stays_as_it_is_known() -> None:
    changed = with_settings({"zai": {"idle_timeout_s": 900, "key_command": ["pass", "zai"]}})["zai"]
    assert (changed.idle_timeout_s, changed.key_command) == (900.0, ("pass", "zai"))
    assert changed.endpoints == KNOWN["zai"].endpoints
    assert with_settings({})["zai"] == KNOWN["zai"]


def test_a_rule_of_the_settings_wins_over_the_known_one() -> None:
    tables = {
        "zai": {
            "models": [
                {
                    "pattern": "GLM-5.2*",
                    "effort": {"words": ["low", "max"]},
                    "price": {"input": 1, "output": 2},
                }
            ]
        }
    }
    chosen = choose(with_settings(tables)["zai"], "glm-5.2", effort="medium")
    assert (chosen.effort_word, chosen.price.output if chosen.price else None) == ("low", 2)
    assert chosen.echo_reasoning == "reasoning_content"


def test_messages_endpoints_get_the_version_that_the_dialect_wants() -> None:
    own = with_settings({"p": {"base_url": "https://x.example/v1", "dialect": "anthropic"}})["p"]
    assert dict(own.endpoints[0].headers) == {"anthropic-version": "2023-06-01"}
    assert own.endpoints[0].dialect is Dialect.ANTHROPIC


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"idle_timeout": 3}, "p.idle_timeout: extra inputs"),
        ({"base_url": "ftp://x", "dialect": "gemini"}, "p.base_url"),
        ({"base_url": "https://x"}, "base_url wants dialect"),
        ({"title": "P"}, "a new provider needs base_url and dialect"),
        ({"base_url": "https://x", "dialect": "soap"}, "p.dialect"),
    ],
)
def test_a_wrong_entry_is_refused_with_its_place(entry: dict[str, Any], told: str) -> None:
    with pytest.raises(SettingsFault, match=told):
        with_settings({"p": entry})
