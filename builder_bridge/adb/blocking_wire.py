"""Wires made of adb-shell's blocking transports: USB, and its own TCP to compare ours with.

Every call runs in a thread and comes back at least each second, so that it can be given up. On USB
a packet's header and its payload are transfers of their own, and a read must ask for exactly one.
"""

import struct
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

import anyio
from adb_shell.exceptions import TcpTimeoutException, UsbReadFailedError, UsbWriteFailedError

from builder_bridge.adb.packets import HEADER, MAX_PAYLOAD_BYTES, Buffer
from builder_bridge.errors import PhoneBusy, PhoneUnavailable, ProtocolFault

if TYPE_CHECKING:
    from adb_shell.transport.usb_transport import UsbTransport

TRY_S = 1.0


class BlockingTransport(Protocol):
    """The part of adb-shell's `BaseTransport` that is used."""

    def connect(self, transport_timeout_s: float) -> None:
        """Take hold of the phone."""

    def bulk_read(self, numbytes: int, transport_timeout_s: float) -> bytes:
        """Read at most so many bytes."""

    def bulk_write(self, data: bytes, transport_timeout_s: float) -> int:
        """Write; tells how many bytes were taken."""

    def close(self) -> None:
        """Let go of the phone."""


class BlockingWire:
    """A `Wire` over a blocking transport that is connected."""

    def __init__(self, transport: BlockingTransport, name: str) -> None:
        self._transport = transport
        self.name = name

    async def receive(self) -> Buffer:
        """Give the next packet whole; none at the end."""
        header = await self._read(HEADER.size)
        if not header:
            return b""
        size_bytes: int = struct.unpack_from("<I", header, 12)[0]
        if size_bytes > MAX_PAYLOAD_BYTES:
            raise ProtocolFault(f"{self.name} announces a packet of {size_bytes} bytes.")
        payload = await self._read(size_bytes)
        if len(payload) < size_bytes:
            raise ConnectionResetError(f"{self.name} ended in the middle of a packet")
        return header + payload

    def send_now(self, buffers: Sequence[Buffer]) -> Sequence[Buffer]:
        """Send nothing: each transfer may block."""
        return buffers

    async def send(self, buffers: Sequence[Buffer]) -> None:
        """Send each buffer as a transfer of its own."""
        for buffer in buffers:
            unsent = memoryview(buffer)
            while unsent:
                unsent = unsent[await anyio.to_thread.run_sync(self._write_some, unsent) :]

    async def close(self) -> None:
        """Let go of the phone."""
        await anyio.to_thread.run_sync(self._transport.close)

    async def _read(self, size_bytes: int) -> bytes:
        """Read so many bytes, however long they take; fewer only at the end."""
        read = bytearray()
        while len(read) < size_bytes:
            part = await anyio.to_thread.run_sync(self._read_some, size_bytes - len(read))
            if part is not None and not part:
                break
            read += part or b""
        return bytes(read)

    def _read_some(self, size_bytes: int) -> bytes | None:
        """Give bytes, none at the end, None where a try has passed without any."""
        try:
            return self._transport.bulk_read(size_bytes, TRY_S)
        except TcpTimeoutException:
            return None
        except UsbReadFailedError as error:
            if type(error.usb_error).__name__ != "USBErrorTimeout":
                raise OSError(str(error)) from error
            return bytes(error.usb_error.received) or None

    def _write_some(self, unsent: memoryview) -> int:
        try:
            return self._transport.bulk_write(bytes(unsent), TRY_S)
        except TcpTimeoutException:
            return 0
        except UsbWriteFailedError as error:
            usb_error = error.args[-1]
            if type(usb_error).__name__ != "USBErrorTimeout":
                raise OSError(str(error)) from error
            return int(usb_error.transferred)


async def open_usb(serial: str | None, timeout_s: float) -> BlockingWire:
    """Take hold of the phone on a USB cable, by its serial number or as the only one.

    Raises `PhoneBusy` where another program, most often an adb server, has it; `PhoneUnavailable`.
    """
    transport = await anyio.to_thread.run_sync(_find_usb, serial)
    name = f"usb:{transport.serial_number}"
    return await open_blocking(transport, name, timeout_s)


async def open_blocking(transport: BlockingTransport, name: str, timeout_s: float) -> BlockingWire:
    """Connect one of adb-shell's transports. Raises `PhoneBusy`, `PhoneUnavailable`."""
    try:
        await anyio.to_thread.run_sync(transport.connect, timeout_s)
    except Exception as error:  # libusb's classes are known only where libusb is installed
        match type(error).__name__:
            case "USBErrorBusy":
                raise PhoneBusy(f"{name} is held by another program, most often an adb server.") from error
            case "USBErrorAccess":
                raise PhoneUnavailable(
                    f"This user may not open {name}.",
                    hint="Install udev rules for Android phones (package android-sdk-platform-tools-common).",
                ) from error
            case _:
                raise PhoneUnavailable(f"{name} cannot be opened: {error}.") from error
    return BlockingWire(transport, name)


def list_usb() -> list[str]:
    """List the serial numbers of phones on USB cables; none where libusb is missing."""
    try:
        return list(_attached())
    except PhoneUnavailable:
        return []


def _attached() -> dict[str, "UsbTransport"]:
    try:
        from adb_shell.transport.usb_transport import UsbTransport
        from usb1 import USBError
    except (ImportError, OSError) as error:
        raise PhoneUnavailable(
            f"USB cannot be used: {error}.",
            hint="Install pocketbuild[usb] and libusb, or let an adb server hold the cable.",
        ) from error
    found: dict[str, UsbTransport] = {}
    for transport in UsbTransport.find_all_adb_devices():
        with suppress(USBError):  # a phone that this user may not ask for its serial number
            found[transport.serial_number] = transport
    return found


def _find_usb(serial: str | None) -> "UsbTransport":
    attached = _attached()
    fitting = [transport for name, transport in attached.items() if serial in (None, name)]
    if len(fitting) == 1:
        return fitting[0]
    there = ", ".join(attached) or "none that this user may open"
    raise PhoneUnavailable(f"There is not exactly one phone {serial or ''} on USB; there are: {there}.")
