"""More known providers: fast hosts, gateways to other vendors' models, and servers of one's own."""

from agent.message import Dialect
from agent.providers.provider import Auth, Effort, Endpoint, ErrorCodes, ModelRule, Provider
from agent.providers.vendors import (
    CHAT,
    FIVE_MINUTES_S,
    GEMINI,
    GLM_CODES,
    MESSAGES,
    ONLY_AUTO,
    OPENAI_CODES,
    RESPONSES,
    THINKING_ON,
    messages,
)

_TEN_MINUTES_S = 600.0
_REASONS_IN_CONTENT = "reasoning_content"

GROQ = Provider(
    "groq",
    "Groq",
    (Endpoint(CHAT, "https://api.groq.com/openai/v1"), Endpoint(RESPONSES, "https://api.groq.com/openai/v1")),
    ("GROQ_API_KEY",),
    models=(
        ModelRule("*gpt-oss*", effort=Effort(("low", "medium", "high")), echo_reasoning="reasoning"),
        ModelRule("qwen*", effort=Effort(("none", "default"))),
    ),
    tool_choices=frozenset({"required", "none", "named"}),
    errors=OPENAI_CODES,
)
XAI = Provider(
    "xai",
    "xAI",
    (Endpoint(RESPONSES, "https://api.x.ai/v1"), Endpoint(CHAT, "https://api.x.ai/v1")),
    ("XAI_API_KEY",),
    tool_choices=frozenset({"required", "none", "named"}),
    max_tools=200,
    idle_timeout_s=FIVE_MINUTES_S,
    errors=OPENAI_CODES,
    note="Some models refuse an effort field, so none is sent unless the settings give the words.",
)
MISTRAL = Provider(
    "mistral",
    "Mistral",
    (Endpoint(CHAT, "https://api.mistral.ai/v1"),),
    ("MISTRAL_API_KEY",),
    models=(
        ModelRule("mistral-medium-3.5*", effort=Effort(("none", "high"))),
        ModelRule("mistral-small-4*", effort=Effort(("none", "high"))),
    ),
    tool_choices=frozenset({"required", "none", "named"}),
    idle_timeout_s=FIVE_MINUTES_S,
    dropped_fields=frozenset({"stream_options"}),
    call_id_chars=9,
    errors=OPENAI_CODES,
)
MIMO = Provider(
    "mimo",
    "Xiaomi MiMo",
    (Endpoint(CHAT, "https://api.xiaomimimo.com/v1"), messages("https://api.xiaomimimo.com/anthropic/v1")),
    ("XIAOMI_API_KEY", "MIMO_API_KEY"),
    models=(ModelRule("mimo-*", body=THINKING_ON, echo_reasoning=_REASONS_IN_CONTENT),),
    tool_choices=ONLY_AUTO,
    idle_timeout_s=FIVE_MINUTES_S,
    errors=OPENAI_CODES,
)
LONGCAT = Provider(
    "longcat",
    "LongCat",
    (
        Endpoint(CHAT, "https://api.longcat.chat/openai/v1"),
        messages("https://api.longcat.chat/anthropic/v1"),
    ),
    ("LONGCAT_API_KEY",),
    models=(ModelRule("longcat-*think*", body=THINKING_ON, echo_reasoning=_REASONS_IN_CONTENT),),
    tool_choices=ONLY_AUTO,
    errors=OPENAI_CODES,
)

_VENDOR_RULES = (
    ModelRule("*glm-5.2*", effort=Effort(("high", "max")), echo_reasoning=_REASONS_IN_CONTENT),
    ModelRule("*glm-*", echo_reasoning=_REASONS_IN_CONTENT),
    ModelRule("*kimi-k3*", effort=Effort(("low", "high", "max")), echo_reasoning=_REASONS_IN_CONTENT),
    ModelRule("*kimi-*", echo_reasoning=_REASONS_IN_CONTENT, echo_empty=True),
    ModelRule(
        "*deepseek-v4*", effort=Effort(("high", "max")), echo_reasoning=_REASONS_IN_CONTENT, echo_empty=True
    ),
    ModelRule("*deepseek-*", echo_reasoning=_REASONS_IN_CONTENT, echo_empty=True),
    ModelRule("*mimo-*", echo_reasoning=_REASONS_IN_CONTENT),
)


def _on(dialect: Dialect, *patterns: str) -> tuple[ModelRule, ...]:
    return tuple(ModelRule(pattern, dialect) for pattern in patterns)


_OPENCODE_CODES = ErrorCodes(
    transient=OPENAI_CODES.transient | GLM_CODES.transient,
    exhausted=OPENAI_CODES.exhausted | {"FreeUsageLimitError", "GoUsageLimitError", "CreditsError"},
    key=frozenset({"AuthError"}),
)
ZEN = Provider(
    "opencode-zen",
    "OpenCode Zen",
    (
        Endpoint(CHAT, "https://opencode.ai/zen/v1"),
        Endpoint(RESPONSES, "https://opencode.ai/zen/v1"),
        messages("https://opencode.ai/zen/v1", Auth.X_API_KEY),
        Endpoint(GEMINI, "https://opencode.ai/zen/v1"),
    ),
    ("OPENCODE_API_KEY",),
    models=(
        *_on(RESPONSES, "gpt-*"),
        *_on(MESSAGES, "claude-*", "qwen*"),
        *_on(GEMINI, "gemini-*"),
        *_VENDOR_RULES,
    ),
    idle_timeout_s=FIVE_MINUTES_S,
    errors=_OPENCODE_CODES,
)
GO = Provider(
    "opencode-go",
    "OpenCode Go",
    (
        Endpoint(CHAT, "https://opencode.ai/zen/go/v1"),
        messages("https://opencode.ai/zen/go/v1", Auth.X_API_KEY),
    ),
    ("OPENCODE_API_KEY",),
    models=(*_on(MESSAGES, "minimax-*", "qwen*"), *_VENDOR_RULES),
    idle_timeout_s=FIVE_MINUTES_S,
    errors=_OPENCODE_CODES,
)
_OPENROUTER_EFFORT = Effort(
    ("none", "minimal", "low", "medium", "high", "xhigh"), body_field="reasoning.effort"
)
OPENROUTER = Provider(
    "openrouter",
    "OpenRouter",
    (
        Endpoint(CHAT, "https://openrouter.ai/api/v1"),
        Endpoint(RESPONSES, "https://openrouter.ai/api/v1"),
        messages("https://openrouter.ai/api/v1"),
    ),
    ("OPENROUTER_API_KEY",),
    models=(
        # It refuses `max` for this model and wants `xhigh` in its place.
        ModelRule("*glm-5.2*", effort=Effort(("high", "xhigh"), body_field="reasoning.effort"),
                  echo_reasoning="reasoning_details"),
        ModelRule("*", on=CHAT, echo_reasoning="reasoning_details", effort=_OPENROUTER_EFFORT),
    ),
    body={"provider": {"require_parameters": True}},
    tool_choices=frozenset({"required", "none", "named"}),
    idle_timeout_s=FIVE_MINUTES_S,
    errors=ErrorCodes(transient=OPENAI_CODES.transient, exhausted=frozenset({"402"})),
)  # fmt: skip
AIHUBMIX = Provider(
    "aihubmix",
    "AiHubMix",
    (
        Endpoint(CHAT, "https://aihubmix.com/v1"),
        Endpoint(RESPONSES, "https://aihubmix.com/v1"),
        messages("https://aihubmix.com/v1"),
        Endpoint(GEMINI, "https://aihubmix.com/gemini/v1beta", Auth.X_GOOG_API_KEY),
    ),
    ("AIHUBMIX_API_KEY",),
    models=(*_on(MESSAGES, "claude-*"), *_VENDOR_RULES),
    idle_timeout_s=FIVE_MINUTES_S,
    errors=OPENAI_CODES,
)
SILICONFLOW = Provider(
    "siliconflow",
    "SiliconFlow",
    (Endpoint(CHAT, "https://api.siliconflow.com/v1"), messages("https://api.siliconflow.com/v1")),
    ("SILICONFLOW_API_KEY",),
    models=_VENDOR_RULES,
    idle_timeout_s=FIVE_MINUTES_S,
    errors=OPENAI_CODES,
    note="In China the host is api.siliconflow.cn.",
)


def _own_server(
    name: str, title: str, base_url: str, *key_env: str, models: tuple[ModelRule, ...] = ()
) -> Provider:
    return Provider(
        name,
        title,
        (Endpoint(CHAT, base_url), Endpoint(RESPONSES, base_url), messages(base_url)),
        key_env,
        key_optional=True,
        models=models,
        tool_choices=ONLY_AUTO,
        idle_timeout_s=_TEN_MINUTES_S,
    )


OLLAMA = _own_server(
    "ollama", "Ollama", "http://localhost:11434/v1", "OLLAMA_API_KEY",
    models=(ModelRule("*gpt-oss*", effort=Effort(("none", "low", "medium", "high", "max"))),),
)  # fmt: skip
LM_STUDIO = _own_server("lmstudio", "LM Studio", "http://127.0.0.1:1234/v1", "LMSTUDIO_API_KEY")
VLLM = _own_server(
    "vllm", "vLLM", "http://localhost:8000/v1", "VLLM_API_KEY",
    models=(ModelRule("*gpt-oss*", effort=Effort(("low", "medium", "high"))),),
)  # fmt: skip
LLAMA_CPP = _own_server("llamacpp", "llama.cpp server", "http://127.0.0.1:8080/v1", "LLAMA_API_KEY")

GATEWAYS = (
    GROQ, XAI, MISTRAL, MIMO, LONGCAT, ZEN, GO, OPENROUTER, AIHUBMIX, SILICONFLOW,
    OLLAMA, LM_STUDIO, VLLM, LLAMA_CPP,
)  # fmt: skip
