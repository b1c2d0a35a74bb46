"""The catalogue: every entry is sound, and a model gets the endpoint and words it wants."""

import pytest

from agent.errors import SettingsFault
from agent.message import Dialect
from agent.providers.catalogue import KNOWN, Choice, choose, custom, find
from agent.providers.provider import Auth, Provider

WANTED = [
    "openai",
    "anthropic",
    "gemini",
    "zai",
    "minimax",
    "opencode-go",
    "opencode-zen",
    "openrouter",
    "deepseek",
    "moonshot",
    "qwen",
    "groq",
    "xai",
    "mistral",
    "mimo",
    "longcat",
    "aihubmix",
    "siliconflow",
    "zhipu",
    "ollama",
    "lmstudio",
    "vllm",
    "llamacpp",
]


def choice(provider: str, model: str, effort: str | None = None, dialect: Dialect | None = None) -> Choice:
    return choose(KNOWN[provider], model, effort=effort, dialect=dialect)


def test_every_provider_that_people_asked_for_is_known() -> None:
    assert set(WANTED) <= set(KNOWN)


@pytest.mark.parametrize("provider", KNOWN.values(), ids=lambda provider: provider.name)
def test_every_entry_has_addresses_that_keep_keys_safe(provider: Provider) -> None:
    assert provider.endpoints
    for endpoint in provider.endpoints:
        is_own = "localhost" in endpoint.base_url or "127.0.0.1" in endpoint.base_url
        assert endpoint.base_url.startswith("http://" if is_own else "https://")
    assert provider.key_optional or provider.key_env
    assert len({endpoint.dialect for endpoint in provider.endpoints}) == len(provider.endpoints)


@pytest.mark.parametrize(
    ("provider", "model", "url"),
    [
        ("openai", "gpt-5.2", "https://api.openai.com/v1/responses"),
        ("zai", "glm-5.2", "https://api.z.ai/api/coding/paas/v4/chat/completions"),
        ("minimax", "MiniMax-M2.7", "https://api.minimax.io/anthropic/v1/messages"),
        ("opencode-zen", "claude-sonnet-5", "https://opencode.ai/zen/v1/messages"),
        (
            "opencode-zen",
            "gemini-3-pro",
            "https://opencode.ai/zen/v1/models/gemini-3-pro:streamGenerateContent?alt=sse",
        ),
        ("opencode-go", "glm-5.2", "https://opencode.ai/zen/go/v1/chat/completions"),
        ("opencode-go", "minimax-m2.7", "https://opencode.ai/zen/go/v1/messages"),
    ],
)
def test_a_model_goes_to_the_endpoint_that_serves_it_best(provider: str, model: str, url: str) -> None:
    assert choice(provider, model).url == url


@pytest.mark.parametrize(
    ("provider", "model", "asked", "sent"),
    [
        ("zai", "glm-5.2", "low", "high"),
        ("zai", "glm-5.2", "xhigh", "high"),
        ("zai", "GLM-5.2", None, "max"),
        ("zai", "glm-4.7", "high", "high"),
        ("minimax", "MiniMax-M3", "high", None),
        ("openai", "gpt-5.1", "max", "high"),
        ("openai", "gpt-5", "none", "minimal"),
        ("anthropic", "claude-opus-4-6", "xhigh", "high"),
    ],
)
def test_effort_becomes_a_word_that_the_model_takes(
    provider: str, model: str, asked: str | None, sent: str | None
) -> None:
    assert choice(provider, model, asked).effort_word == sent


def test_effort_goes_to_its_own_field_where_the_provider_has_one() -> None:
    routed = choice("openrouter", "z-ai/glm-5.2", "max")
    assert (routed.effort_word, routed.body["reasoning"]) == (None, {"effort": "xhigh"})


def test_thinking_that_must_come_back_is_asked_for_by_field() -> None:
    assert choice("deepseek", "deepseek-v4").echo_reasoning == "reasoning_content"
    assert choice("deepseek", "deepseek-v4").echo_empty


def test_a_dialect_that_a_provider_does_not_speak_is_refused_with_those_it_does() -> None:
    with pytest.raises(SettingsFault, match="mistral does not speak anthropic; it speaks openai-chat"):
        choice("mistral", "devstral", dialect=Dialect.ANTHROPIC)


def test_an_unknown_provider_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(SettingsFault, match=r"no provider is called 'opnai'.*openai"):
        find("opnai", KNOWN)


def test_any_address_is_a_provider() -> None:
    own = choose(custom("https://llm.example/v1", Dialect.GEMINI), "m", effort="high")
    assert own.url == "https://llm.example/v1/models/m:streamGenerateContent?alt=sse"
    assert (own.endpoint.auth, own.effort_word) == (Auth.X_GOOG_API_KEY, "high")
