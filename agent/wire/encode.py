"""Write a request in the dialect of its provider."""

from agent.message import Dialect, JsonObject, Request
from agent.wire import anthropic_request, gemini_request, openai_chat_request, openai_responses_request


def encode(dialect: Dialect, request: Request) -> JsonObject:
    """Give the JSON body of the POST that asks for a streamed response."""
    match dialect:
        case Dialect.OPENAI_CHAT:
            return openai_chat_request.encode(request)
        case Dialect.OPENAI_RESPONSES:
            return openai_responses_request.encode(request)
        case Dialect.ANTHROPIC:
            return anthropic_request.encode(request)
        case Dialect.GEMINI:
            return gemini_request.encode(request)
