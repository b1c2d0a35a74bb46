"""Parts of a message while they are still coming."""

from dataclasses import dataclass, field

from agent.message import JsonObject
from agent.wire.arguments import Unreadable, check_object, read_arguments
from agent.wire.json_text import Nesting, ends_in_high_surrogate, mend_surrogates
from agent.wire.limits import MAX_ARGUMENT_CHARS

_PLACEHOLDERS = frozenset({"", "{}", "null"})


@dataclass(slots=True, eq=False)
class TextDraft:
    """Visible text or thinking that is growing; `is_tagged` thinking came between tags in the text."""

    offset: int
    is_reasoning: bool
    is_tagged: bool = False
    is_touched: bool = False
    provider_data: JsonObject | None = None
    fresh: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)

    def take_fresh(self) -> str:
        """Give what came since the last time; half of a surrogate pair waits for the other."""
        text = "".join(self.fresh)
        self.fresh = []
        if ends_in_high_surrogate(text):
            self.fresh, text = [text[-1]], text[:-1]
        text = mend_surrogates(text)
        self.told.append(text)
        return text

    @property
    def text(self) -> str:
        """All of the text so far."""
        return "".join(self.told) + mend_surrogates("".join(self.fresh))

    def replace(self, text: str) -> None:
        """Put the provider's own whole text in place of what its deltas gave."""
        self.told, self.fresh = [mend_surrogates(text)], []


@dataclass(slots=True, eq=False)
class CallDraft:
    """A tool call that is growing.

    `number` counts the calls of a message as they appear; `index` is the provider's. `pieces` are the
    argument fragments as they came; `whole` are fuller sources that the provider sent besides, of
    which a later one wins. `is_closed` says that the provider called it complete, `is_plain_text` that
    its input need not be JSON, `is_orphan` that its beginning never came, `needs_id` that calls of its
    kind have ids. `refusal` ends a sentence that begins with `The arguments`: why they are unusable,
    where that is known before the end.
    """

    number: int
    offset: int
    index: int | None = None
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    whole: list[str | JsonObject] = field(default_factory=list)
    provider_data: JsonObject | None = None
    refusal: str | None = None
    needs_id: bool = True
    is_closed: bool = False
    is_orphan: bool = False
    is_plain_text: bool = False
    is_torn: bool = False
    is_touched: bool = False
    told_pieces: int = 0
    told_chars: int = 0
    _nesting: Nesting = field(default_factory=Nesting)
    _scanned_pieces: int = 0
    _is_balanced: bool = False

    def take_name(self, piece: object) -> None:
        """Take a name or a piece of it: a repeat changes nothing, another piece is appended."""
        if isinstance(piece, str) and piece.strip() and piece != self.name:
            self.name = piece if piece.startswith(self.name) else self.name + piece

    def take_fresh(self) -> str:
        """Give the argument text that came since the last time."""
        text = "".join(self.pieces[self.told_pieces :])
        self.told_pieces = len(self.pieces)
        self.told_chars += len(text)
        return mend_surrogates(text)

    def tear(self) -> None:
        """Take that arguments were lost which may have been this call's, unless it has all of its own."""
        self.is_torn = self.is_torn or not self.has_arguments

    @property
    def lacks_a_part(self) -> bool:
        """Whether what was lost may be missing, since nothing that came later has it all."""
        if not self.is_torn or any(self.whole):
            return False
        last = self.pieces[-1:]
        return not (last and last[0].lstrip()[:1] == "{" and isinstance(read_arguments(last), dict))

    @property
    def is_blank(self) -> bool:
        """Whether no argument came at all."""
        return not any(self.whole) and all(piece.isspace() for piece in self.pieces)

    @property
    def is_placeholder(self) -> bool:
        """Whether the fragments say no more than that there are no arguments."""
        return len(self.pieces) <= 3 and _is_placeholder("".join(self.pieces))

    @property
    def has_arguments(self) -> bool:
        """Whether the arguments are complete by now and more than a placeholder.

        Each fragment is looked at once, however often this is asked.
        """
        for number in range(self._scanned_pieces, len(self.pieces)):
            piece = self.pieces[number]
            if number == 0 and _is_placeholder(piece):
                continue
            if not self._is_balanced and self._nesting.feed(piece) >= 0:
                self._is_balanced = number > 2 or not _is_placeholder("".join(self.pieces[: number + 1]))
                self._nesting = Nesting()
            elif number and piece[:1] == "{" and piece.startswith(self.pieces[number - 1]):
                # Perhaps a snapshot of all so far, which is complete if it is by itself.
                self._is_balanced = self._is_balanced or Nesting().feed(piece) >= 0
        self._scanned_pieces = len(self.pieces)
        return self._is_balanced

    @property
    def has_object(self) -> bool:
        """Whether the arguments so far are complete, be it as a placeholder."""
        return self.has_arguments or (len(self.pieces) == 1 and self.pieces[0].strip() == "{}")

    @property
    def raw_arguments(self) -> str:
        """The arguments as they were streamed, empty where they came as an object."""
        texts = [text for text in self.whole if isinstance(text, str) and not _is_placeholder(text)]
        return texts[-1] if texts else "".join(self.pieces)

    def read_arguments(self) -> JsonObject | Unreadable:
        """Make the arguments of all that came; a fuller source wins over fragments."""
        if self.is_plain_text:
            return _read_plain_input(self.raw_arguments)
        whole = [source for source in reversed(self.whole) if not _is_placeholder(source)]
        fault = None
        for source in (*whole, self.pieces):
            if isinstance(source, dict):
                return check_object(source)
            fragments = [source] if isinstance(source, str) else source
            if sum(map(len, fragments)) > MAX_ARGUMENT_CHARS:
                return Unreadable(f"are longer than {MAX_ARGUMENT_CHARS} characters", is_too_long=True)
            found = read_arguments(fragments)
            if not isinstance(found, Unreadable) and (fragments or fault is None):
                return found
            fault = fault or (found if isinstance(found, Unreadable) else None)
        return fault or {}


def _is_placeholder(source: str | JsonObject) -> bool:
    return not source or (isinstance(source, str) and source.strip() in _PLACEHOLDERS)


def _read_plain_input(text: str) -> JsonObject | Unreadable:
    """Read the input of a custom tool: a JSON object is what it is, anything else is one text."""
    if len(text) > MAX_ARGUMENT_CHARS:
        return Unreadable(f"are longer than {MAX_ARGUMENT_CHARS} characters", is_too_long=True)
    read = read_arguments([text]) if not text or text.lstrip().startswith("{") else None
    return read if isinstance(read, dict) else {"input": mend_surrogates(text)}
