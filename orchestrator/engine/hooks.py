"""Tells the ends of builds to other programs by POST, signed as Standard Webhooks say.

What is to be told was written in the transaction that ended the build, so no end is forgotten; a
receiver that fails is tried again, and may hear an end twice (`webhook-id` stays the same). Receivers
are told side by side: a slow one holds up nobody but itself.
"""

import base64
import hashlib
import hmac
import ipaddress
import json
import socket
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio
import sqlalchemy as sa
import structlog

from orchestrator import bell
from orchestrator.engine.outage import outlast_outages
from orchestrator.engine.resources import EngineResources
from orchestrator.store import builds as build_store
from orchestrator.store.tables import webhooks

if TYPE_CHECKING:
    import httpx

log = structlog.get_logger(__name__)
WAITS_S = (5.0, 30.0, 300.0, 1800.0, 7200.0, 36000.0)
"""How long after each failed try the next one comes; after the last it is given up."""
LOOK_S = 5.0
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
ANSWER_S = 15.0
AT_ONCE = 4
"""How many ends one receiver is told at once."""


class PrivateAddress(Exception):
    """A receiver's name leads to an address inside, which the settings do not allow."""


@dataclass(frozen=True, slots=True)
class Due:
    """An end that is to be told now."""

    id: str
    url: str
    build_id: str
    tries: int


class HookSender:
    """One a host; tells the ends of builds that ended here."""

    def __init__(self, resources: EngineResources) -> None:
        self._stores = resources.stores
        self._settings = resources.stores.settings.webhooks
        self._host = resources.host_id
        self._at_work: set[str] = set()

    async def run(self) -> None:
        """Tell what is due, whenever a build ends and every few seconds."""
        if not self._settings.urls:
            return
        import httpx  # only a service with webhooks needs it, and it is slow to load

        ring = self._stores.bells.of("builds")
        # AT_ONCE is the bound: with one on all connections, slow receivers could hold every one.
        limits = httpx.Limits(max_connections=None)
        async with (
            httpx.AsyncClient(
                timeout=ANSWER_S, trust_env=False, follow_redirects=False, limits=limits
            ) as http,
            anyio.create_task_group() as receivers,
        ):
            while True:
                rung = ring.listen()
                for url in set(await outlast_outages(self._waiting)) - self._at_work:
                    self._at_work.add(url)
                    receivers.start_soon(self._serve, http, url)
                await bell.wait(rung, LOOK_S)

    async def _serve(self, http: "httpx.AsyncClient", url: str) -> None:
        """Tell one receiver what is due until nothing is."""
        ring = self._stores.bells.of("builds")
        while True:
            rung = ring.listen()
            found = await outlast_outages(partial(self._due, url))
            async with anyio.create_task_group() as telling:
                for due in found:
                    telling.start_soon(outlast_outages, partial(self._tell, http, due))
            if not found and not rung.is_set():
                # Nothing waits from the look at the ring to here, so no end falls in between.
                self._at_work.discard(url)
                return

    async def _waiting(self) -> list[str]:
        """Give the receivers that are to be told something now."""
        query = sa.select(webhooks.c.url).where(*self._is_due()).distinct()
        return await self._stores.database.read(lambda c: [row[0] for row in c.execute(query)])

    async def _due(self, url: str) -> list[Due]:
        """Give what a receiver is to be told next, the oldest first."""
        query = sa.select(webhooks.c.id, webhooks.c.url, webhooks.c.build_id, webhooks.c.tries)
        query = query.where(*self._is_due(), webhooks.c.url == url).order_by(webhooks.c.due_s).limit(AT_ONCE)
        return await self._stores.database.read(lambda c: [Due(*row) for row in c.execute(query)])

    def _is_due(self) -> tuple[sa.ColumnElement[bool], ...]:
        table = webhooks.c
        return table.host == self._host, table.done_s.is_(None), table.due_s <= time.time()

    async def _tell(self, http: "httpx.AsyncClient", due: Due) -> None:
        build = await self._stores.database.read(lambda c: build_store.get(c, due.build_id))
        if build is None:
            await self._note(due, done_s=time.time(), failure="the build is no longer kept")
            return
        data = {"id": build.id, "project": build.project, "owner": build.owner, "outcome": build.outcome,
                "exit_code": build.exit_code, "cause": build.cause}  # fmt: skip
        body = json.dumps(
            {"type": "build.finished", "timestamp": _iso(build.finished_s), "data": data}
        ).encode()
        import httpx

        try:
            address = await anyio.to_thread.run_sync(check_address, due.url, self._settings.allow_private)
            headers = {"content-type": "application/json", **self._signed(due.id, body)}
            answer = await _post(http, due.url, address, body, headers)
            failure = None if answer.is_success else f"status {answer.status_code}"
        except (httpx.HTTPError, httpx.InvalidURL, OSError, PrivateAddress, ValueError) as fault:
            failure = f"{type(fault).__name__}: {fault}"
        if failure is None:
            await self._note(due, done_s=time.time(), failure=None)
            log.info("webhook.delivered", build_id=due.build_id, url=due.url)
        elif due.tries >= len(WAITS_S):
            await self._note(due, done_s=time.time(), failure=failure)
            log.warning("webhook.given_up", build_id=due.build_id, url=due.url, failure=failure)
        else:
            await self._note(due, due_s=time.time() + WAITS_S[due.tries], failure=failure)
            log.warning("webhook.failed", build_id=due.build_id, url=due.url, failure=failure)

    async def _note(self, due: Due, **values: Any) -> None:
        change = webhooks.update().where(webhooks.c.id == due.id).values(tries=due.tries + 1, **values)
        await self._stores.database.run(lambda c: c.execute(change))

    def _signed(self, message_id: str, body: bytes) -> dict[str, str]:
        stamp = str(int(time.time()))
        headers = {"webhook-id": message_id, "webhook-timestamp": stamp}
        if self._settings.secret is not None:
            headers["webhook-signature"] = sign(
                self._settings.secret.get_secret_value(), message_id, stamp, body
            )
        return headers


def sign(secret: str, message_id: str, timestamp: str, body: bytes) -> str:
    """Sign a message as Standard Webhooks v1 does; the secret is `whsec_` and base64, or plain text."""
    key = base64.b64decode(secret.removeprefix("whsec_")) if secret.startswith("whsec_") else secret.encode()
    signed = hmac.new(key, f"{message_id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(signed).decode()}"


def check_address(url: str, allow_private: bool) -> str:
    """Resolve a receiver's name once and give its address; blocking.

    Raises `PrivateAddress` for one inside, unless that is allowed. The caller connects to this very
    address, so a name that changes meanwhile leads nowhere else.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or parts.hostname is None:
        raise ValueError(f"{url} is no http address")
    found = socket.getaddrinfo(parts.hostname, parts.port or 443, type=socket.SOCK_STREAM)
    addresses = [str(entry[4][0]) for entry in found]
    for address in addresses:
        if not allow_private and not _is_public(address):
            raise PrivateAddress(f"{parts.hostname} is {address}, which is not a public address")
    return addresses[0]


def _is_public(address: str) -> bool:
    """Say whether an address is one host of the public internet, also by what is wrapped in it."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    inner = None
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if ip in _NAT64:
            return False
    return ip.is_global and not ip.is_multicast and (inner is None or inner.is_global)


async def _post(
    http: "httpx.AsyncClient", url: str, address: str, body: bytes, headers: dict[str, str]
) -> "httpx.Response":
    import httpx

    parts = httpx.URL(url)
    pinned = parts.copy_with(host=address)
    host = parts.netloc.decode("ascii")
    extensions = {"sni_hostname": parts.host}
    return await http.post(pinned, content=body, headers={**headers, "host": host}, extensions=extensions)


def _iso(seconds: float | None) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds or 0))
