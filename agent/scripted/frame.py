"""The events of a scripted response, before they are bytes."""

from dataclasses import dataclass

from pydantic_core import to_json

from agent.message import JsonObject


@dataclass(frozen=True, slots=True)
class Frame:
    """One server-sent event: its name where the dialect gives one, and its data.

    Data that is a string stands there as it is, JSON or not.
    """

    data: JsonObject | str
    event: str | None = None

    def to_bytes(self) -> bytes:
        """Give the event as it goes over the wire."""
        head = f"event: {self.event}\n".encode() if self.event else b""
        data = self.data.encode() if isinstance(self.data, str) else to_json(self.data)
        return head + b"data: " + data + b"\n\n"


def pieces(text: str, size_chars: int = 24) -> list[str]:
    """Cut a text as a model streams it."""
    return [text[at : at + size_chars] for at in range(0, len(text), size_chars)]
