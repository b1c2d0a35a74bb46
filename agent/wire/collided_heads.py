"""Give arguments back to calls whose heads all came under one index while their tails count on.

Seen with several calls at once: every head says index 0, the fragments say 0, 1 and 2. While it
streams this looks like calls that follow each other at one index, the earlier ones without arguments;
only a tail under an index that no head had shows that the tails are right.
"""

from agent.wire.arguments import Unreadable, read_arguments
from agent.wire.assemble import Assembly
from agent.wire.draft import CallDraft


class TailLog:
    """The fragments since heads first collided: under which index they came, and where they went."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._tails: list[tuple[int, CallDraft, int]] = []
        self.is_watching = False

    def note(self, index: int, draft: CallDraft) -> None:
        """Note the fragment that `draft` has just got."""
        self._tails.append((index, draft, len(draft.pieces) - 1))

    def settle(self) -> None:
        """Sort the fragments by their index, if that makes every call complete and nothing else does."""
        calls = self._assembly.calls
        named = [draft for draft in calls if draft.name or not draft.is_orphan]
        heads = {draft.index for draft in named}
        indexes = {index for index, _, _ in self._tails}
        if indexes <= heads or not all(0 <= index < len(named) for index in indexes):
            return
        moved = {(draft.number, at) for _, draft, at in self._tails}
        sorted_pieces = {
            draft.number: [piece for at, piece in enumerate(draft.pieces) if (draft.number, at) not in moved]
            for draft in calls
        }
        for index, draft, at in self._tails:
            sorted_pieces[named[index].number].append(draft.pieces[at])
        if any(isinstance(read_arguments(sorted_pieces[draft.number]), Unreadable) for draft in named):
            return
        orphans = [draft for draft in calls if draft not in named]
        if any(sorted_pieces[draft.number] for draft in orphans):
            return
        for draft in named:
            draft.pieces = sorted_pieces[draft.number]
        for draft in orphans:
            self._assembly.drop_call(draft)
