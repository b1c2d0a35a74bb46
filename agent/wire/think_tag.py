"""Split a `<think>` block off the very start of a text that comes in pieces.

Servers that do not know their model's thinking leave it in the text between these tags.
"""

OPEN_TAG = "<think>"
CLOSE_TAG = "</think>"


class ThinkTag:
    """Tell thinking in tags from text, piece by piece.

    `is_over` is true once no more thinking can follow. Until then what could be part of a tag is held
    back; thinking is told before it is known whether its block will ever close.
    """

    __slots__ = ("_held", "is_inside", "is_over")

    def __init__(self) -> None:
        self.is_inside = False
        self.is_over = False
        self._held = ""

    def feed(self, piece: str) -> tuple[str, str]:
        """Take more of the text; give the thinking and the text that it settles."""
        text = self._held + piece
        self._held = ""
        if not self.is_inside:
            if not text.startswith(OPEN_TAG):
                if OPEN_TAG.startswith(text):
                    self._held = text
                    return "", ""
                self.is_over = True
                return "", text
            self.is_inside = True
            text = text[len(OPEN_TAG) :]
        thinking, tag, rest = text.partition(CLOSE_TAG)
        if tag:
            self.is_over = True
            return thinking, rest
        kept = len(text) - _tag_start_chars(text)
        self._held = text[kept:]
        return text[:kept], ""

    def close(self) -> str:
        """Give what is still held back; without a closing tag all of it is text."""
        return self._held


def without_thinking(text: str) -> str:
    """Give a whole text without the `<think>` block at its start, if it has one that closes."""
    is_block = text.startswith(OPEN_TAG) and CLOSE_TAG in text
    return text.partition(CLOSE_TAG)[2] if is_block else text


def _tag_start_chars(text: str) -> int:
    """Give how many characters at the end of `text` may be the beginning of the closing tag."""
    longest = min(len(text), len(CLOSE_TAG) - 1)
    return next((n for n in range(longest, 0, -1) if CLOSE_TAG.startswith(text[-n:])), 0)
