"""Libraries that read a model's answer, each through its own client over a mock transport."""

import asyncio
import base64
import json
import os
from collections.abc import Callable
from typing import Any

URL = "http://127.0.0.1:9/v1"
ASK = [{"role": "user", "content": "go"}]

Found = dict[str, Any]
"""text, reasoning, calls [(id, name, arguments or None)], finish, usage (in, out)."""


def body_of(case: dict[str, Any]) -> bytes:
    return b"".join(c.encode() if isinstance(c, str) else base64.b64decode(c["b64"]) for c in case["chunks"])


def found(text: Any, reasoning: Any, calls: list[tuple[Any, Any, Any]], finish: Any, usage: Any) -> Found:
    return {
        "text": text or "",
        "reasoning": reasoning or "",
        "calls": calls,
        "finish": finish,
        "usage": usage,
    }


def arguments(text: Any) -> Any:
    """Read arguments as the peers' users do; None where they cannot be read."""
    if isinstance(text, dict):
        return text
    try:
        value = json.loads(text) if text and text.strip() else {}
    except (ValueError, AttributeError):
        return None
    return value if isinstance(value, dict) else None


def client(body: bytes, module: str, *, asynchronous: bool = False) -> Any:
    """Give an HTTP client of that module whose every answer is `body`."""
    http = __import__(module)
    kind = "application/json" if body.lstrip()[:1] in b"{[" else "text/event-stream"

    def answer(_request: Any) -> Any:
        return http.Response(200, headers={"content-type": kind}, content=body)

    return (http.AsyncClient if asynchronous else http.Client)(transport=http.MockTransport(answer))


def http_module(library: Any) -> str:
    return "httpx2" if hasattr(library._base_client, "httpx2") else "httpx"


# The peers


def pocketbuild(dialect: str, body: bytes) -> Found:
    from agent.message import Dialect
    from agent.wire import ResponseParser

    parser = ResponseParser(Dialect(dialect))
    parser.feed(body)
    message = parser.close()
    calls = [(c.id, c.name, None if c.fault and not c.arguments else c.arguments) for c in message.tool_calls]
    usage = message.usage and (message.usage.input_tokens, message.usage.output_tokens)
    return found(message.text, message.reasoning, calls, message.finish_reason, usage)


def chat_completion(completion: Any) -> Found:
    choice = completion.choices[0]
    message = choice.message
    calls = [(c.id, c.function.name, arguments(c.function.arguments)) for c in message.tool_calls or ()]
    usage = completion.usage and (completion.usage.prompt_tokens, completion.usage.completion_tokens)
    reasoning = getattr(message, "reasoning_content", None) or getattr(message, "reasoning", None)
    return found(message.content, reasoning, calls, choice.finish_reason, usage)


def openai_sdk(dialect: str, body: bytes) -> Found:
    import openai

    sdk = openai.OpenAI(
        api_key="k", base_url=URL, max_retries=0, http_client=client(body, http_module(openai))
    )
    if dialect == "openai-chat":
        with sdk.chat.completions.stream(model="m", messages=ASK) as stream:  # type: ignore[arg-type]
            return chat_completion(stream.get_final_completion())
    with sdk.responses.stream(model="m", input="go") as stream:
        response = stream.get_final_response()
    items = [item for item in response.output if item.type in ("function_call", "custom_tool_call")]
    calls = [(i.call_id, i.name, arguments(getattr(i, "arguments", None) or i.input)) for i in items]
    reasoning = "".join(s.text for i in response.output if i.type == "reasoning" for s in i.summary)
    usage = response.usage and (response.usage.input_tokens, response.usage.output_tokens)
    return found(response.output_text, reasoning, calls, response.status, usage)


def litellm_sdk(_dialect: str, body: bytes) -> Found:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import litellm
    import openai

    litellm.suppress_debug_info = True
    sdk = openai.OpenAI(
        api_key="k", base_url=URL, max_retries=0, http_client=client(body, http_module(openai))
    )
    chunks = list(litellm.completion("openai/m", ASK, stream=True, client=sdk))
    return chat_completion(litellm.stream_chunk_builder(chunks, messages=ASK))


def anthropic_sdk(_dialect: str, body: bytes) -> Found:
    import anthropic

    http = client(body, http_module(anthropic))
    sdk = anthropic.Anthropic(api_key="k", base_url=URL, max_retries=0, http_client=http)
    with sdk.messages.stream(model="m", max_tokens=9, messages=ASK) as stream:  # type: ignore[arg-type]
        message = stream.get_final_message()
    blocks, counts = message.content, message.usage
    text = "".join(block.text for block in blocks if block.type == "text")
    reasoning = "".join(block.thinking for block in blocks if block.type == "thinking")
    calls = [(block.id, block.name, arguments(block.input)) for block in blocks if block.type == "tool_use"]
    prompt = (
        counts.input_tokens
        + (counts.cache_read_input_tokens or 0)
        + (counts.cache_creation_input_tokens or 0)
    )
    return found(text, reasoning, calls, message.stop_reason, (prompt, counts.output_tokens))


def genai_sdk(_dialect: str, body: bytes) -> Found:
    from google import genai
    from google.genai import _api_client, types

    module = "httpx2" if hasattr(_api_client, "httpx2") else "httpx"
    options = types.HttpOptions(base_url=URL, httpx_client=client(body, module))
    text, reasoning, calls, finish, usage = "", "", [], None, None
    sdk = genai.Client(api_key="k", http_options=options)
    for chunk in sdk.models.generate_content_stream(model="m", contents="go"):
        counts = chunk.usage_metadata
        if counts and counts.prompt_token_count is not None:
            output = (counts.candidates_token_count or 0) + (counts.thoughts_token_count or 0)
            usage = (counts.prompt_token_count, output)
        for candidate in (chunk.candidates or ())[:1]:
            finish = (candidate.finish_reason and candidate.finish_reason.value) or finish
            for part in (candidate.content and candidate.content.parts) or ():
                text += part.text or "" if not part.thought else ""
                reasoning += part.text or "" if part.thought else ""
                if part.function_call:
                    calls.append(
                        (part.function_call.id, part.function_call.name, part.function_call.args or {})
                    )
    return found(text, reasoning, calls, finish, usage)


def pydantic_ai(dialect: str, body: bytes) -> Found:
    from pydantic_ai.direct import model_request_stream
    from pydantic_ai.messages import ModelRequest

    async def read() -> Any:
        async with model_request_stream(
            _pydantic_model(dialect, body), [ModelRequest.user_text_prompt("go")]
        ) as stream:
            async for _ in stream:
                pass
            return stream.get()

    message = asyncio.run(read())
    text = "".join(part.content for part in message.parts if part.part_kind == "text")
    reasoning = "".join(part.content or "" for part in message.parts if part.part_kind == "thinking")
    called = [part for part in message.parts if part.part_kind == "tool-call"]
    calls = [(part.tool_call_id, part.tool_name, arguments(part.args)) for part in called]
    return found(
        text,
        reasoning,
        calls,
        message.finish_reason,
        (message.usage.input_tokens, message.usage.output_tokens),
    )


def _pydantic_model(dialect: str, body: bytes) -> Any:
    if dialect == "anthropic":
        import anthropic
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        http = client(body, http_module(anthropic), asynchronous=True)
        sdk = anthropic.AsyncAnthropic(api_key="k", base_url=URL, max_retries=0, http_client=http)
        return AnthropicModel("claude-sonnet-4-5", provider=AnthropicProvider(anthropic_client=sdk))
    import openai
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    http = client(body, http_module(openai), asynchronous=True)
    sdk = openai.AsyncOpenAI(api_key="k", base_url=URL, max_retries=0, http_client=http)
    return OpenAIChatModel("m", provider=OpenAIProvider(openai_client=sdk))


PEERS: dict[str, tuple[Callable[[str, bytes], Found], str, tuple[str, ...]]] = {
    "pocketbuild": (pocketbuild, "", ("openai-chat", "anthropic", "gemini", "openai-responses")),
    "openai": (openai_sdk, "openai", ("openai-chat", "openai-responses")),
    "litellm": (litellm_sdk, "litellm", ("openai-chat",)),
    "pydantic-ai": (pydantic_ai, "pydantic-ai-slim", ("openai-chat", "anthropic")),
    "anthropic": (anthropic_sdk, "anthropic", ("anthropic",)),
    "google-genai": (genai_sdk, "google-genai", ("gemini",)),
}
