"""Who asks: one check in front of everything that is served, so that no mount is forgotten.

On a loopback bind, a request without a token is the machine's own user, who may do everything;
with `require_token`, or on any other bind, a token is wanted. The Host header must be a name this
service knows, or a web page could reach it by pointing its own name here.
"""

import hashlib
import secrets
import time
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

import sqlalchemy as sa
import structlog
from sqlalchemy.exc import DBAPIError
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orchestrator.errors import BadRequest, Forbidden, NotReady, Refusal, Unauthenticated
from orchestrator.problem import Ids, problem_response
from orchestrator.settings import Settings
from orchestrator.store import tokens
from orchestrator.store.database import Database

LOCAL_OWNER = "local"
OPEN_PATHS = frozenset({"/", "/docs", "/healthz", "/readyz"})
OPEN_BELOW = ("/builds/", "/static/")
"""The frames of pages, which hold no data: their scripts ask the API, where this check stands."""
MAX_REQUEST_ID_CHARS = 64


class Permission(StrEnum):
    """What a token may do."""

    READ = "builds:read"
    WRITE = "builds:write"
    CANCEL = "builds:cancel"
    AGENT = "agent:run"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks and what they may do; `admin` may see and do everything of every owner."""

    owner: str
    permissions: frozenset[str]

    @property
    def is_admin(self) -> bool:
        """Whether everything is allowed."""
        return Permission.ADMIN in self.permissions

    def may(self, permission: Permission) -> bool:
        """Say whether something is allowed."""
        return self.is_admin or permission in self.permissions

    def sees(self, owner: str) -> bool:
        """Say whether what belongs to an owner may be read."""
        return self.is_admin or self.owner == owner


LOCAL = Principal(LOCAL_OWNER, frozenset({Permission.ADMIN}))


class AccessCheck:
    """ASGI middleware: request id, Host check and token, before any route or mount."""

    def __init__(self, app: ASGIApp, settings: Settings, database: Database) -> None:
        self._app = app
        self._settings = settings
        self._database = database

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through with its principal in `scope["state"]`, or answer it with a problem."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        request_id = _request_id(headers)
        state = scope.setdefault("state", {})
        state["request_id"] = request_id
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=request_id)

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["x-request-id"] = request_id
            await send(message)

        try:
            _check_host(headers.get("host", ""), self._settings)
            _check_origin(headers, scope["method"])
            if scope["path"] not in OPEN_PATHS and not scope["path"].startswith(OPEN_BELOW):
                state["principal"] = await self._principal(headers)
        except DBAPIError:
            refusal = NotReady("the database does not answer", code="database_unavailable")
            await problem_response(refusal, Ids(request_id))(scope, receive, send_with_id)
            return
        except Refusal as refusal:
            await problem_response(refusal, Ids(request_id))(scope, receive, send_with_id)
            return
        await self._app(scope, receive, send_with_id)

    async def _principal(self, headers: Headers) -> Principal:
        authorization = headers.get("authorization")
        if authorization is None:
            if self._settings.wants_token:
                raise Unauthenticated("this service wants a token and the request carries none")
            return LOCAL
        kind, _, secret = authorization.partition(" ")
        if kind.lower() != "bearer" or not secret:
            raise Unauthenticated("the Authorization header is not `Bearer` and a token")
        digest = hash_token(secret.strip())
        row = await self._database.read(lambda connection: tokens.valid(connection, digest, time.time()))
        if row is None:
            raise Unauthenticated("the token is unknown, revoked or expired")
        return Principal(row.owner, frozenset(row.scopes))


def new_token() -> tuple[str, str]:
    """Make a secret; give it and the digest under which it is stored."""
    secret = f"pb_{secrets.token_urlsafe(32)}"
    return secret, hash_token(secret)


def hash_token(secret: str) -> str:
    """Give what is stored of a token; it has 256 random bits, so one round of sha256 is enough."""
    return hashlib.sha256(secret.encode()).hexdigest()


def has_tokens(connection: sa.Connection) -> bool:
    """Say whether any token is valid now, without which a service that wants one is of no use."""
    now_s = time.time()
    return any(tokens.is_valid(token, now_s) for token in tokens.list_all(connection))


def _request_id(headers: Headers) -> str:
    sent = headers.get("x-request-id", "")
    if 0 < len(sent) <= MAX_REQUEST_ID_CHARS and sent.isascii() and sent.replace("-", "").isalnum():
        return sent
    return secrets.token_hex(8)


def _check_host(host: str, settings: Settings) -> None:
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    name = name.strip("[]").lower()
    if name not in _known_names(settings):
        raise BadRequest(
            f"this service is not called {name!r}",
            code="unknown_host",
            hint="Use its address, or add the name to `host_names` in the settings.",
        )


def _check_origin(headers: Headers, method: str) -> None:
    """Refuse what the script of another site sends: a browser carries it to loopback without asking."""
    origin = headers.get("origin")
    if origin is None or method in ("GET", "HEAD", "OPTIONS"):
        return
    if origin.partition("://")[2].lower() != headers.get("host", "").lower():
        raise Forbidden(
            f"a page of {origin[:200]!r} may change nothing here",
            code="cross_origin",
            hint="Ask from the service's own pages, or from a program, which sends no Origin header.",
        )


def _known_names(settings: Settings) -> Collection[str]:
    names = {"localhost", "127.0.0.1", "::1", settings.bind.lower()}
    return names | {name.lower() for name in settings.host_names}
