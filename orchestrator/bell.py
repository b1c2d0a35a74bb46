"""Wakes who waits for a change inside this process, so that nobody polls for what happens here.

A bell carries no data: who is woken looks again. Changes made by another host ring no bell here,
so every wait has a time after which the waiter looks anyway.
"""

from weakref import WeakValueDictionary

import anyio


class Bell:
    """One thing that changes; rung in the loop's own thread."""

    def __init__(self) -> None:
        self._next = anyio.Event()

    def ring(self) -> None:
        """Wake everybody who waits now."""
        self._next.set()
        self._next = anyio.Event()

    def listen(self) -> anyio.Event:
        """Give the event of the next ring; take it before looking, so that no ring is missed."""
        return self._next


class Bells:
    """Bells by name, kept for as long as somebody holds one."""

    def __init__(self) -> None:
        self._bells: WeakValueDictionary[str, Bell] = WeakValueDictionary()

    def of(self, name: str) -> Bell:
        """Give the bell of a name; hold it while waiting."""
        bell = self._bells.get(name)
        if bell is None:
            bell = self._bells[name] = Bell()
        return bell

    def ring(self, name: str) -> None:
        """Wake who waits for this name, if anybody does."""
        bell = self._bells.get(name)
        if bell is not None:
            bell.ring()


async def wait(event: anyio.Event, at_most_s: float) -> bool:
    """Wait for a ring; say whether one came within the time."""
    with anyio.move_on_after(at_most_s):
        await event.wait()
    return event.is_set()
