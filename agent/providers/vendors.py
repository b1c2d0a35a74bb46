"""Vendors of models that are known without settings: facts from their documentation and from reports."""

from agent.message import Dialect, JsonObject
from agent.providers.provider import Auth, Effort, Endpoint, ErrorCodes, ModelRule, Provider

CHAT, RESPONSES = Dialect.OPENAI_CHAT, Dialect.OPENAI_RESPONSES
MESSAGES, GEMINI = Dialect.ANTHROPIC, Dialect.GEMINI

ANTHROPIC_VERSION = (("anthropic-version", "2023-06-01"),)
FIVE_MINUTES_S = 300.0
THINKING_ON: JsonObject = {"thinking": {"type": "enabled"}}
ONLY_AUTO: frozenset[str] = frozenset()
OPENAI_CODES = ErrorCodes(
    transient=frozenset({"rate_limit_exceeded", "server_error", "overloaded"}),
    exhausted=frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}),
    key=frozenset({"invalid_api_key"}),
)


def messages(base_url: str, auth: Auth = Auth.BEARER) -> Endpoint:
    """Give an endpoint that speaks the Messages dialect; `base_url` includes the version."""
    return Endpoint(MESSAGES, base_url, auth, ANTHROPIC_VERSION)


OPENAI = Provider(
    "openai",
    "OpenAI",
    (Endpoint(RESPONSES, "https://api.openai.com/v1"), Endpoint(CHAT, "https://api.openai.com/v1")),
    ("OPENAI_API_KEY",),
    models=(
        ModelRule("gpt-6*", effort=Effort(("low", "medium", "high", "xhigh", "max")), context_tokens=400_000),
        ModelRule(
            "gpt-5.[2-9]*", effort=Effort(("none", "low", "medium", "high", "xhigh")), context_tokens=400_000
        ),
        ModelRule("gpt-5.1*", effort=Effort(("none", "low", "medium", "high")), context_tokens=400_000),
        ModelRule("gpt-5*", effort=Effort(("minimal", "low", "medium", "high")), context_tokens=400_000),
        ModelRule("o[134]*", effort=Effort(("low", "medium", "high")), context_tokens=200_000),
    ),
    tool_choices=frozenset({"required", "none", "named"}),
    max_tokens_field="max_completion_tokens",
    errors=OPENAI_CODES,
)

ANTHROPIC = Provider(
    "anthropic",
    "Anthropic",
    (messages("https://api.anthropic.com/v1", Auth.X_API_KEY),),
    ("ANTHROPIC_API_KEY",),
    models=(
        ModelRule(
            "claude-opus-4-[6-9]*",
            effort=Effort(("low", "medium", "high", "max"), body={"thinking": {"type": "adaptive"}}),
            context_tokens=200_000,
            max_output_tokens=32_000,
        ),
        ModelRule(
            "claude-*-[5-9]*",
            effort=Effort(("low", "medium", "high", "xhigh", "max"), body={"thinking": {"type": "adaptive"}}),
            context_tokens=200_000,
            max_output_tokens=32_000,
        ),
        ModelRule("claude-*", context_tokens=200_000, max_output_tokens=16_000),
    ),
    errors=ErrorCodes(
        transient=frozenset({"rate_limit_error", "overloaded_error", "api_error", "timeout_error"}),
        exhausted=frozenset({"billing_error"}),
        key=frozenset({"authentication_error", "permission_error"}),
    ),
)

GOOGLE = Provider(
    "gemini",
    "Google Gemini",
    (
        Endpoint(GEMINI, "https://generativelanguage.googleapis.com/v1beta", Auth.X_GOOG_API_KEY),
        Endpoint(CHAT, "https://generativelanguage.googleapis.com/v1beta/openai"),
    ),
    ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"),
    models=(
        ModelRule("gemini-3.1-pro*", effort=Effort(("low", "medium", "high")), context_tokens=1_000_000),
        ModelRule("gemini-3*", effort=Effort(("minimal", "low", "medium", "high")), context_tokens=1_000_000),
        ModelRule("gemini-*", context_tokens=1_000_000),
    ),
    errors=ErrorCodes(
        transient=frozenset({"RESOURCE_EXHAUSTED", "UNAVAILABLE", "INTERNAL", "DEADLINE_EXCEEDED"}),
        key=frozenset({"UNAUTHENTICATED", "PERMISSION_DENIED"}),
    ),
)

GLM_CODES = ErrorCodes(
    transient=frozenset({"1302", "1305"}),
    exhausted=frozenset({"1113", "1308", "1309", "1310", *(str(code) for code in range(1313, 1322))}),
    key=frozenset({"1000", "1001", "1002", "1003", "1004"}),
    overload_wait_s=30.0,
)
_GLM_THINKS: JsonObject = {"thinking": {"type": "enabled", "clear_thinking": False}, "tool_stream": True}
GLM_RULES = (
    ModelRule("glm-5.3*", effort=Effort(("low", "high", "max"), "max"), echo_reasoning="reasoning_content",
              body=_GLM_THINKS, context_tokens=200_000),
    # Catalogues deny GLM-5.2 an effort field; the endpoint takes it.
    ModelRule("glm-5.2*", effort=Effort(("high", "max"), "max"), echo_reasoning="reasoning_content",
              body=_GLM_THINKS, context_tokens=200_000),
    ModelRule("glm-*", echo_reasoning="reasoning_content", body=_GLM_THINKS, context_tokens=128_000),
)  # fmt: skip
ZAI = Provider(
    "zai",
    "Z.AI GLM Coding Plan",
    (
        Endpoint(CHAT, "https://api.z.ai/api/coding/paas/v4"),
        messages("https://api.z.ai/api/anthropic/v1"),
    ),
    ("ZAI_API_KEY", "ZHIPU_API_KEY"),
    models=GLM_RULES,
    tool_choices=ONLY_AUTO,
    idle_timeout_s=FIVE_MINUTES_S,
    errors=GLM_CODES,
    note="Plan keys spend the balance at the pay-as-you-go address https://api.z.ai/api/paas/v4.",
)
ZHIPU = Provider(
    "zhipu",
    "Zhipu BigModel (China)",
    (
        Endpoint(CHAT, "https://open.bigmodel.cn/api/paas/v4"),
        messages("https://open.bigmodel.cn/api/anthropic/v1"),
    ),
    ("ZHIPU_API_KEY", "ZAI_API_KEY"),
    models=GLM_RULES,
    tool_choices=ONLY_AUTO,
    idle_timeout_s=FIVE_MINUTES_S,
    errors=GLM_CODES,
    note="The coding plan's address in China is https://open.bigmodel.cn/api/coding/paas/v4.",
)

MINIMAX = Provider(
    "minimax",
    "MiniMax",
    (
        messages("https://api.minimax.io/anthropic/v1"),
        Endpoint(CHAT, "https://api.minimax.io/v1"),
        Endpoint(RESPONSES, "https://api.minimax.io/v1"),
    ),
    ("MINIMAX_API_KEY",),
    models=(
        ModelRule("minimax-m3*", on=MESSAGES, body={"thinking": {"type": "adaptive"}}),
        ModelRule("minimax-*", on=CHAT, body={"reasoning_split": True}, echo_reasoning="reasoning_details"),
        ModelRule("minimax-*", effort=Effort(()), context_tokens=200_000),
    ),
    tool_choices=ONLY_AUTO,
    idle_timeout_s=FIVE_MINUTES_S,
    errors=ErrorCodes(
        transient=frozenset({"1000", "1001", "1002", "1013", "1033", "1039", "overloaded_error"}),
        exhausted=frozenset({"1008", "2056"}),
        key=frozenset({"1004", "2049", "authentication_error"}),
    ),
    note="There is no effort field. In China the host is api.minimaxi.com.",
)

DEEPSEEK = Provider(
    "deepseek",
    "DeepSeek",
    (
        Endpoint(CHAT, "https://api.deepseek.com"),
        messages("https://api.deepseek.com/anthropic/v1", Auth.X_API_KEY),
        Endpoint(RESPONSES, "https://api.deepseek.com"),
    ),
    ("DEEPSEEK_API_KEY",),
    models=(
        ModelRule("deepseek-*", effort=Effort(("low", "high", "max"), "high", body=THINKING_ON),
                  echo_reasoning="reasoning_content", echo_empty=True, context_tokens=128_000),
    ),
    tool_choices=frozenset({"none"}),
    idle_timeout_s=FIVE_MINUTES_S,
    errors=ErrorCodes(transient=OPENAI_CODES.transient, exhausted=frozenset({"insufficient_balance"})),
)  # fmt: skip

_KIMI_CODES = ErrorCodes(
    transient=frozenset({"engine_overloaded_error", "rate_limit_reached_error", "rate_limit_error"}),
    exhausted=frozenset({"exceeded_current_quota_error"}),
    key=frozenset({"invalid_authentication_error", "permission_denied_error"}),
)
_KIMI_RULES = (
    ModelRule("kimi-k3*", effort=Effort(("low", "high", "max"), "max"), echo_reasoning="reasoning_content",
              echo_empty=True, context_tokens=256_000),
    ModelRule("kimi-*", echo_reasoning="reasoning_content", echo_empty=True, context_tokens=256_000),
)  # fmt: skip
MOONSHOT = Provider(
    "moonshot",
    "Moonshot Kimi",
    (
        Endpoint(CHAT, "https://api.moonshot.ai/v1"),
        Endpoint(RESPONSES, "https://api.moonshot.ai/v1"),
        messages("https://api.moonshot.ai/anthropic/v1"),
    ),
    ("MOONSHOT_API_KEY",),
    models=_KIMI_RULES,
    tool_choices=frozenset({"none"}),
    idle_timeout_s=FIVE_MINUTES_S,
    errors=_KIMI_CODES,
    note="In China the host is api.moonshot.cn.",
)
KIMI_CODING = Provider(
    "kimi-coding",
    "Kimi for Coding plan",
    (messages("https://api.kimi.com/coding/v1"), Endpoint(CHAT, "https://api.kimi.com/coding/v1")),
    ("KIMI_API_KEY",),
    models=_KIMI_RULES,
    tool_choices=frozenset({"none"}),
    idle_timeout_s=FIVE_MINUTES_S,
    errors=_KIMI_CODES,
    note="A plan limit of about 20 minutes is reported as an overloaded engine.",
)

QWEN = Provider(
    "qwen",
    "Alibaba Qwen (DashScope)",
    (
        Endpoint(CHAT, "https://dashscope-intl.aliyuncs.com/compatible-mode/v1"),
        Endpoint(RESPONSES, "https://dashscope-intl.aliyuncs.com/compatible-mode/v1"),
        messages("https://dashscope-intl.aliyuncs.com/apps/anthropic/v1"),
    ),
    ("DASHSCOPE_API_KEY",),
    models=(ModelRule("qwen*", on=CHAT, body={"parallel_tool_calls": True}),),
    tool_choices=frozenset({"none"}),
    errors=ErrorCodes(
        transient=frozenset({"limit_requests", "Throttling", "Throttling.RateQuota"}),
        exhausted=frozenset({"insufficient_quota", "Arrearage"}),
        key=frozenset({"invalid_api_key", "InvalidApiKey"}),
    ),
    note="The coding plan's address is https://coding-intl.dashscope.aliyuncs.com/v1.",
)

VENDORS = (
    OPENAI, ANTHROPIC, GOOGLE, ZAI, ZHIPU, MINIMAX, DEEPSEEK, MOONSHOT, KIMI_CODING, QWEN,
)  # fmt: skip
