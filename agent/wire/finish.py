"""What providers say at the end of a response, in one vocabulary."""

import re

from agent.message import FinishReason

_NOISE = re.compile(r"[^a-z]")

_WORDS = {
    FinishReason.STOP: "stop end end_turn stop_sequence eos eos_token complete completed done finished "
    "pause_turn",
    FinishReason.TOOL_CALLS: "tool_calls tool_call tool_use function_call function_calls",
    FinishReason.LENGTH: "length max_tokens max_output_tokens max_length max_completion_tokens token_limit "
    "model_length model_context_window_exceeded context_length_exceeded context_window_exceeded",
    FinishReason.CONTENT_FILTER: "content_filter content_filtered content_policy_violation sensitive refusal "
    "safety recitation language blocklist blocked prohibited_content spii image_safety guardrail "
    "guardrail_intervened image_prohibited_content image_recitation model_armor",
    FinishReason.ERROR: "error failed network_error insufficient_system_resource "
    "insufficient_system_resources "
    "abort aborted cancel cancelled canceled interrupted timeout other engine_overloaded server_error "
    "malformed_function_call unexpected_tool_call too_many_tool_calls malformed_response "
    "missing_thought_signature tool_use_failed",
}
_REASONS = {_NOISE.sub("", word): reason for reason, words in _WORDS.items() for word in words.split()}
_NO_WORDS = frozenset({"", "null", "none", "finishreasonunspecified"})
_FAILED_CALLS = frozenset(
    {"malformedfunctioncall", "unexpectedtoolcall", "toomanytoolcalls", "toolusefailed"}
)


def finish_reason(word: str) -> FinishReason | None:
    """Give what a provider's word means, None where it is no word yet.

    Capitals, underscores, dashes and spaces do not matter. A word that nobody knows is an orderly end.
    """
    bare = _NOISE.sub("", word.lower())
    return None if bare in _NO_WORDS else _REASONS.get(bare, FinishReason.STOP)


def tells_failed_call(word: str) -> bool:
    """Whether the word says that the model tried a call which the provider could not make out."""
    return _NOISE.sub("", word.lower()) in _FAILED_CALLS
