"""The first exchange with a phone: who are you, do you know my key, shall we speak TLS?"""

import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import anyio

from builder_bridge.adb.events import AuthWanted, Banner, Connected, TlsWanted
from builder_bridge.adb.keys import AdbKey
from builder_bridge.adb.protocol import AdbProtocol
from builder_bridge.adb.tls_wire import TlsWire
from builder_bridge.adb.wires import Wire
from builder_bridge.errors import (
    PhoneNotPaired,
    PhoneOffline,
    PhoneUnauthorized,
    PhoneWantsTls,
    ProtocolFault,
)


@dataclass(frozen=True, slots=True)
class Greeting:
    """How a phone let us in; `key_fingerprint` is None where it asked for no key.

    `wire` is the one to go on with: the same as before, or one inside TLS.
    """

    banner: Banner
    key_fingerprint: str | None
    wire: Wire


class Greeter:
    """Greets over one wire; `on_dialog` is called with a sentence when the owner must act."""

    def __init__(
        self, wire: Wire, protocol: AdbProtocol, keys: Sequence[AdbKey], on_dialog: Callable[[str], None]
    ) -> None:
        self._wire = wire
        self._protocol = protocol
        self._keys = keys
        self._on_dialog = on_dialog
        self._tried = 0
        self._is_tls = False
        self._may_ask = True
        self._is_dialog_open = False

    async def greet(self, answer_timeout_s: float, dialog_timeout_s: float) -> Greeting:
        """Come to an agreement. Raises the `PhoneUnavailable` that fits; nothing runs before.

        The phone has `answer_timeout_s` for its answers and its owner `dialog_timeout_s` more; with
        0 for the owner nobody is asked.
        """
        self._may_ask = dialog_timeout_s > 0
        try:
            with anyio.fail_after(answer_timeout_s) as patience:
                return await self._talk(patience, dialog_timeout_s)
        except TimeoutError:
            if self._is_dialog_open:
                raise PhoneUnauthorized(
                    f"{self._wire.name} asked its owner to allow this computer; "
                    f"nobody answered within {dialog_timeout_s:g} s."
                ) from None
            raise PhoneOffline(f"{self._wire.name} did not greet within {answer_timeout_s:g} s.") from None
        except ProtocolFault as fault:
            raise PhoneOffline(f"{self._wire.name} does not speak adb: {fault}") from fault
        except ssl.SSLError as error:
            raise PhoneNotPaired(f"{self._wire.name} refused our key inside TLS: {error.reason}.") from error
        except OSError as error:
            raise self._hung_up(error.strerror or str(error)) from error

    async def _talk(self, patience: anyio.CancelScope, dialog_timeout_s: float) -> Greeting:
        self._protocol.greet()
        while True:
            await self._wire.send(self._protocol.take_output())
            data = await self._wire.receive()
            if not data:
                raise self._hung_up("it closed the connection")
            for event in self._protocol.feed(data):
                match event:
                    case Connected(banner):
                        return self._let_in(banner)
                    case AuthWanted(token):
                        await self._prove(token)
                        if self._is_dialog_open:
                            patience.deadline = anyio.current_time() + dialog_timeout_s
                    case TlsWanted():
                        await self._begin_tls()
                    case _:
                        raise AssertionError("no stream was opened")

    def _let_in(self, banner: Banner) -> Greeting:
        if banner.state in ("offline", "unauthorized"):
            raise PhoneOffline(f"{self._wire.name} says that it is {banner.state}.")
        key = self._keys[max(0, self._tried - 1)] if self._tried or self._is_tls else None
        return Greeting(banner, key.fingerprint if key else None, self._wire)

    async def _prove(self, token: bytes) -> None:
        if self._tried < len(self._keys) and not self._is_dialog_open:
            key = self._keys[self._tried]
            self._tried += 1
            self._protocol.sign(await anyio.to_thread.run_sync(key.sign, token))
            return
        if self._is_dialog_open or not self._keys or not self._may_ask:
            raise PhoneUnauthorized(f"{self._wire.name} does not allow this computer.")
        self._tried = 1
        self._is_dialog_open = True
        self._protocol.offer_key(self._keys[0].public_key)
        self._on_dialog(f"{self._wire.name} asks its owner: allow USB debugging for this computer?")

    async def _begin_tls(self) -> None:
        if not self._keys:
            raise PhoneWantsTls(f"{self._wire.name} speaks only TLS, and there is no key to speak it with.")
        self._protocol.begin_tls()
        await self._wire.send(self._protocol.take_output())
        inside = TlsWire(self._wire, await anyio.to_thread.run_sync(self._keys[0].tls_context))
        await inside.shake_hands()
        self._wire = inside
        self._is_tls = True

    def _hung_up(self, reason: str) -> PhoneOffline:
        return PhoneOffline(f"{self._wire.name} did not greet: {reason}.")
