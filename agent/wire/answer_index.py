"""Which of several answers in one response is the one that is read."""

from collections.abc import Callable

from agent.wire.scalars import whole_number


class AnswerIndex:
    """The index of the answer that is read: the lowest seen; one without an index belongs to it.

    `begin_anew` is called when a lower index shows that what was read so far is another answer.
    """

    def __init__(self, begin_anew: Callable[[], None]) -> None:
        self.value: int | None = None
        self._begin_anew = begin_anew

    def selects(self, told: object) -> bool:
        """Whether an answer with this index, as the provider told it, is the one that is read."""
        index = whole_number(told)
        if index is None or index == self.value:
            return True
        if self.value is not None and index > self.value:
            return False
        if self.value is not None:
            self._begin_anew()
        self.value = index
        return True
