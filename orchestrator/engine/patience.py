"""How long a vanished phone is waited for, and which faults are worth waiting at all."""

from dataclasses import dataclass, field

from builder_bridge.errors import BridgeError, PhoneBusy, ProtocolFault, TransferFault

FIRST_WAIT_S = 0.1
MAX_DAMAGED = 5


@dataclass(slots=True)
class Patience:
    """Decides about the next try after a fault; `now_s` comes from the caller's clock.

    A phone that stays away for `gone_after_s` in one piece is given up; damaged bytes are tried
    again a few times; everything else is final at once. A phone that answers and is busy is asked
    ever more seldom.
    """

    gone_after_s: float
    max_wait_s: float
    last_contact_s: float
    _wait_s: float = FIRST_WAIT_S
    _damaged: int = field(default=0)
    _is_busy: bool = False
    _told: str = ""

    def saw_phone(self, now_s: float) -> None:
        """Note that the phone answered."""
        self.last_contact_s = now_s
        if not self._is_busy:
            self._wait_s, self._told = FIRST_WAIT_S, ""

    def is_news(self, fault: BridgeError) -> bool:
        """Say whether a fault is another than the last one: one that lasts is worth one warning."""
        last, self._told = self._told, f"{fault.code}: {fault}"
        return self._told != last

    def next_wait_s(self, fault: BridgeError, now_s: float) -> float | None:
        """Give how long to wait before the next try, or None to give up."""
        if not fault.is_passing or now_s - self.last_contact_s > self.gone_after_s:
            return None
        if isinstance(fault, ProtocolFault | TransferFault):
            self._damaged += 1
            if self._damaged > MAX_DAMAGED:
                return None
        self._is_busy = isinstance(fault, PhoneBusy)
        wait_s = self._wait_s
        self._wait_s = min(self.max_wait_s, self._wait_s * 2)
        return wait_s
