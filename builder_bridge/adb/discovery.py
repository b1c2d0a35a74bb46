"""Listens for phones that announce themselves on the network (multicast DNS, by python-zeroconf).

Nothing here raises because of the network or of what is announced there: where no listening is
possible, nothing is heard and `trouble` says why.
"""

import fcntl
import logging
import socket
import struct
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING

import anyio
import structlog

from builder_bridge.adb.announcements import (
    MAX_ANNOUNCEMENTS,
    Announcement,
    Announcements,
    Service,
    read_announcement,
)
from builder_bridge.adb.waiting import Signal, beside

if TYPE_CHECKING:
    from zeroconf import Zeroconf
    from zeroconf.asyncio import AsyncZeroconf

log = structlog.get_logger()

LISTEN_S = 2.5
"""A phone answers within a second; this leaves room for one lost question."""
FIND_S = 3.0
START_S = 10.0
"""A busy machine may take seconds to load what listens."""
RESCAN_S = 30.0
"""So often a lasting browser looks for interfaces that have come or gone."""
ASK_TIMEOUT_S = 2.0
MAX_ASKED_AT_ONCE = 8
_GET_FLAGS = 0x8913  # SIOCGIFFLAGS
_UP, _LOOPBACK, _MULTICAST = 0x1, 0x8, 0x1000


class PhoneBrowser:
    """Hears of phones while `run` runs; one task owns it, any number may ask.

    `trouble` says in a sentence why nothing can be heard; empty where listening works.
    """

    def __init__(self, rescan_s: float = RESCAN_S) -> None:
        self.trouble = ""
        self._rescan_s = rescan_s
        self._announcements = Announcements()
        self._unresolved = deque[tuple[Service, str]]()
        self._has_unresolved = Signal()
        self._has_news = Signal()
        self._began_at: float | None = None

    @property
    def heard(self) -> tuple[Announcement, ...]:
        """All that is announced now."""
        return tuple(self._announcements)

    @property
    def left_out(self) -> int:
        """How many announcements were too many."""
        return self._announcements.left_out

    async def settle(self, listen_s: float = LISTEN_S) -> None:
        """Wait until it has listened for so long, or cannot."""
        await self._listen_until(lambda: False, listen_s)

    async def find(self, serial: str, wait_s: float = FIND_S) -> Sequence[str]:
        """Tell where a phone announces itself, as HOST:PORT; none when it does not.

        A browser that has listened for `wait_s` already knows, and answers at once.
        """
        self._announcements.want(serial)
        await self._listen_until(lambda: bool(self.addresses_of(serial)), wait_s)
        return self.addresses_of(serial)

    async def _listen_until(self, is_enough: Callable[[], bool], listen_s: float) -> None:
        """Wait for something to be heard; the time counts from when listening began."""
        with anyio.move_on_after(START_S):
            while self._began_at is None and not self.trouble:
                await self._has_news.wait()
        if self._began_at is None:
            return
        with anyio.move_on_after(self._began_at + listen_s - anyio.current_time()):
            while not (is_enough() or self.trouble):
                await self._has_news.wait()

    def addresses_of(self, serial: str) -> tuple[str, ...]:
        """Tell where a phone announces itself, as far as it was heard until now."""
        return self._announcements.addresses_of(serial)

    async def run(self) -> None:
        """Listen until cancelled, also when the network comes later or changes."""
        while True:
            self.trouble = why_not()
            if not self.trouble:
                self.trouble = await self._listen()
            self._announcements.forget_all()
            self._has_news.notify()
            log.info("discovery.was_impossible", reason=self.trouble)
            await anyio.sleep(self._rescan_s)

    async def _listen(self) -> str:
        """Listen as long as that is possible; gives the reason for the end."""
        # It takes a quarter of a second to load, which no build by cable should pay.
        await anyio.to_thread.run_sync(import_module, "zeroconf.asyncio")
        from zeroconf import Error

        logging.getLogger("zeroconf").setLevel(logging.CRITICAL)  # it tells of each bad packet of a stranger
        try:
            await self._listen_by(_open_zeroconf())
        except (OSError, RuntimeError, Error) as error:  # RuntimeError: no address of IPv4 anywhere
            return f"Listening by multicast failed: {error}."
        return why_not()

    async def _listen_by(self, zeroconf: "AsyncZeroconf") -> None:
        from zeroconf.asyncio import AsyncServiceBrowser

        try:
            types = [service.value for service in Service]
            browser = AsyncServiceBrowser(zeroconf.zeroconf, types, handlers=[self._notice])
            self._began_at = self._began_at or anyio.current_time()
            self._has_news.notify()
            try:
                async with beside(lambda: self._resolve(zeroconf.zeroconf)):
                    while not why_not():
                        await anyio.sleep(self._rescan_s)
                        await zeroconf.async_update_interfaces()
            finally:
                await browser.async_cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await zeroconf.async_close()

    def _notice(self, zeroconf: "Zeroconf", service_type: str, name: str, state_change: object) -> None:
        from zeroconf import ServiceStateChange

        service = Service(service_type)
        if state_change is ServiceStateChange.Removed:
            self._announcements.forget(service, name)
            self._has_news.notify()
        elif self._announcements.takes(service, name) and not self._take(zeroconf, service, name):
            if self._announcements.is_wanted(service, name):
                self._unresolved.appendleft((service, name))
            elif len(self._unresolved) < MAX_ANNOUNCEMENTS:
                self._unresolved.append((service, name))
            self._has_unresolved.notify()

    def _take(self, zeroconf: "Zeroconf", service: Service, name: str) -> bool:
        """Take an announcement of which everything has been heard; False where something is missing."""
        from zeroconf import Error
        from zeroconf.asyncio import AsyncServiceInfo

        try:
            info = AsyncServiceInfo(service.value, name)
        except Error:
            return True  # no name that DNS allows
        if not info.load_from_cache(zeroconf):
            return False
        announcement = read_announcement(service, name, info.parsed_scoped_addresses(), info.port or 0)
        if announcement is None:
            self._announcements.forget(service, name)
        else:
            self._announcements.hear(name, announcement)
        self._has_news.notify()
        return True

    async def _resolve(self, zeroconf: "Zeroconf") -> None:
        """Ask for what announcements left open, a few at once."""
        may_ask = anyio.Semaphore(MAX_ASKED_AT_ONCE)
        async with anyio.create_task_group() as tasks:
            while True:
                while not self._unresolved:
                    await self._has_unresolved.wait()
                await may_ask.acquire()
                tasks.start_soon(self._ask, zeroconf, *self._unresolved.popleft(), may_ask)

    async def _ask(self, zeroconf: "Zeroconf", service: Service, name: str, may_ask: anyio.Semaphore) -> None:
        from zeroconf import Error
        from zeroconf.asyncio import AsyncServiceInfo

        try:
            with suppress(Error, OSError):
                await AsyncServiceInfo(service.value, name).async_request(zeroconf, ASK_TIMEOUT_S * 1000)
                self._take(zeroconf, service, name)
        finally:
            may_ask.release()


@asynccontextmanager
async def browse(rescan_s: float = RESCAN_S) -> AsyncIterator[PhoneBrowser]:
    """Listen for the block."""
    browser = PhoneBrowser(rescan_s)
    async with beside(browser.run):
        yield browser


async def find_once(serial: str) -> Sequence[str]:
    """Listen for a phone for a short while; gives HOST:PORTs where it announces itself, or none."""
    async with browse() as browser:
        return await browser.find(serial)


def why_not() -> str:
    """Say why no multicast can be heard on this host; empty where it can."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for _, name in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(asking, _GET_FLAGS, struct.pack("16sH14x", name.encode(), 0))
            except OSError:
                continue  # gone in between
            flags = struct.unpack("16xH14x", answer)[0]
            if flags & _UP and flags & _MULTICAST and not flags & _LOOPBACK:
                return ""
    return "No network interface of this host takes multicast, so phones on the network cannot be heard."


def _open_zeroconf() -> "AsyncZeroconf":
    from zeroconf import IPVersion
    from zeroconf.asyncio import AsyncZeroconf

    # Phones announce their IPv6 addresses over IPv4, too, while an interface's own are not usable at first.
    return AsyncZeroconf(ip_version=IPVersion.V4Only)
