"""adb-shell's blocking transports as a wire: USB played by a fake with libusb's faults."""

import pytest
from adb_shell.exceptions import TcpTimeoutException, UsbReadFailedError, UsbWriteFailedError

from builder_bridge.adb.blocking_wire import BlockingWire, open_blocking
from builder_bridge.errors import PhoneBusy, PhoneUnavailable, ProtocolFault
from tests.fakes_adb import packet

pytestmark = pytest.mark.anyio


class USBErrorTimeout(Exception):
    """As libusb's, which is known here by its name alone; part of a transfer may have gone."""

    def __init__(self, received: bytes = b"", transferred: int = 0) -> None:
        super().__init__("LIBUSB_ERROR_TIMEOUT")
        self.received, self.transferred = received, transferred


class USBErrorNoDevice(Exception):
    pass


class USBErrorBusy(Exception):
    pass


class USBErrorAccess(Exception):
    pass


class FakeUsb:
    """Plays what is given: bytes are read or taken, exceptions raised."""

    def __init__(self, *steps: object) -> None:
        self.steps = list(steps)
        self.written = b""
        self.asked: list[int] = []

    def connect(self, transport_timeout_s: float) -> None:
        self._next()

    def bulk_read(self, numbytes: int, transport_timeout_s: float) -> bytes:
        self.asked.append(numbytes)
        step = self._next()
        assert isinstance(step, bytes)
        return step

    def bulk_write(self, data: bytes, transport_timeout_s: float) -> int:
        step = self.steps.pop(0) if self.steps else len(data)
        if isinstance(step, Exception):
            timed_out = step.args[-1] if step.args else None
            transferred = timed_out.transferred if isinstance(timed_out, USBErrorTimeout) else 0
            self.written += data[:transferred]
            raise step
        assert isinstance(step, int)
        self.written += data[:step]
        return step

    def close(self) -> None:
        self.steps.append("closed")

    def _next(self) -> object:
        step = self.steps.pop(0)
        if isinstance(step, Exception):
            raise step
        return step


WHOLE = packet(b"WRTE", 1, 2, b"payload of the packet")


async def test_header_and_payload_are_read_as_the_transfers_that_they_are() -> None:
    usb = FakeUsb(WHOLE[:24], WHOLE[24:])
    assert await BlockingWire(usb, "usb:X").receive() == WHOLE
    assert usb.asked == [24, len(WHOLE) - 24]


async def test_silence_is_waited_through_and_what_came_before_a_timeout_is_kept() -> None:
    quiet = UsbReadFailedError("", USBErrorTimeout())
    half = UsbReadFailedError("", USBErrorTimeout(received=WHOLE[24:30]))
    usb = FakeUsb(quiet, TcpTimeoutException(), WHOLE[:24], half, WHOLE[30:])
    assert await BlockingWire(usb, "usb:X").receive() == WHOLE


async def test_the_end_is_no_bytes_and_an_end_inside_a_packet_is_a_fault() -> None:
    assert await BlockingWire(FakeUsb(b""), "usb:X").receive() == b""
    with pytest.raises(ConnectionResetError, match="middle of a packet"):
        await BlockingWire(FakeUsb(WHOLE[:24], b"pay", b""), "usb:X").receive()


async def test_a_pulled_cable_is_an_os_error_on_both_ways() -> None:
    with pytest.raises(OSError, match="NO_DEVICE"):
        await BlockingWire(FakeUsb(UsbReadFailedError("NO_DEVICE", USBErrorNoDevice())), "usb:X").receive()
    with pytest.raises(OSError, match="NO_DEVICE"):
        await BlockingWire(FakeUsb(UsbWriteFailedError("NO_DEVICE", USBErrorNoDevice())), "usb:X").send(
            [b"x"]
        )


async def test_short_and_timed_out_writes_go_on_where_they_stopped() -> None:
    usb = FakeUsb(3, UsbWriteFailedError("", USBErrorTimeout(transferred=2)), TcpTimeoutException())
    await BlockingWire(usb, "usb:X").send([b"0123456789", b"next"])
    assert usb.written == b"0123456789next"


async def test_a_packet_larger_than_adb_allows_is_not_read() -> None:
    header = bytearray(WHOLE[:24])
    header[12:16] = b"\xff\xff\xff\x7f"
    with pytest.raises(ProtocolFault, match="announces"):
        await BlockingWire(FakeUsb(bytes(header)), "usb:X").receive()


@pytest.mark.parametrize(
    ("error", "kind", "told"),
    [
        (USBErrorBusy(), PhoneBusy, "held by another program"),
        (USBErrorAccess(), PhoneUnavailable, "may not open"),
        (USBErrorNoDevice("gone"), PhoneUnavailable, "cannot be opened: gone"),
    ],
)
async def test_why_a_cable_cannot_be_held_is_told_apart(
    error: Exception, kind: type[PhoneUnavailable], told: str
) -> None:
    with pytest.raises(kind, match=told):
        await open_blocking(FakeUsb(error), "usb:X", 1)
