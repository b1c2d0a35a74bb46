"""Where a scripted provider is found, and which dialect a request to it speaks."""

from agent.message import Dialect
from agent.providers.provider import Auth, Endpoint, Provider
from agent.providers.vendors import ANTHROPIC_VERSION
from agent.scripted.local_server import Peer

SCRIPTED_PROVIDER = "scripted"
"""The name in the catalogue of every server that follows a script."""
_DIALECTS = {
    "/chat/completions": Dialect.OPENAI_CHAT,
    "/responses": Dialect.OPENAI_RESPONSES,
    "/messages": Dialect.ANTHROPIC,
    ":streamGenerateContent": Dialect.GEMINI,
}


def scripted_provider(base_url: str, title: str) -> Provider:
    """Give the catalogue entry of a server that follows a script, in every dialect."""
    endpoints = tuple(
        Endpoint(dialect, base_url, Auth.NONE, ANTHROPIC_VERSION if dialect is Dialect.ANTHROPIC else ())
        for dialect in Dialect
    )
    return Provider(
        SCRIPTED_PROVIDER, title, endpoints, key_optional=True, idle_timeout_s=30.0, is_scripted=True
    )


def dialect_of(target: str) -> Dialect | None:
    """Give the dialect whose path this is, None for any other path."""
    path = target.partition("?")[0]
    return next((dialect for end, dialect in _DIALECTS.items() if path.endswith(end)), None)


async def refuse_path(peer: Peer, target: str) -> None:
    """Answer a request for what is not served."""
    message = f"scripted provider: nothing is served at {target.partition('?')[0]}"
    await peer.send_json(404, {"error": {"message": message}})
