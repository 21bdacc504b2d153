"""Who hears what happens in a session outside of a turn, and who listens in while somebody else's turn plays.

Every connection that has a session open is in its audience. A turn speaks to the one that prompted, who alone is asked
and answered; the others get the same updates as far as they keep up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mockagent.message import Origin, Peer
from mockagent.script.output import Admission, Fail, Item, Need, Output, Stop, Text, Ticket, ToolCall, Wire


class Audience:
    """Several outputs as one.

    Args:
        members: gives those who have the session open just then; the last to come is asked first.
        leader: the one whose turn it is, or None outside of turns.
    """

    def __init__(self, members: Callable[[], Sequence[Output]], leader: Output | None = None) -> None:
        self._members = members
        self._leader = leader
        self._lagging: list[Output] = []

    @property
    def leader(self) -> Output | None:
        """Whose turn it is."""
        return self._leader

    @property
    def peer(self) -> Peer | None:
        """The leader's connection."""
        return None if self._leader is None else self._leader.peer

    def lead(self, out: Output | None) -> None:
        """Another output takes the turn over (the next request, a reconnect), or nobody does."""
        self._leader = out

    def left(self, out: Output) -> None:
        """A client has gone: if it was its turn, that goes on without it."""
        if self._leader is not None and self._leader.same_client(out):
            self._leader = None

    def _others(self) -> list[Output]:
        leader = self._leader
        return [member for member in self._members() if leader is None or not member.same_client(leader)]

    @property
    def room(self) -> int:
        """The leader's room; without one, that of the slowest, so that nothing piles up anywhere."""
        if self._leader is not None:
            return self._leader.room
        return min((member.room for member in self._members()), default=_PLENTY)

    def same_client(self, other: Output) -> bool:
        """Whether both lead to the same connection."""
        return self._leader is not None and self._leader.same_client(other)

    def emit(self, item: Item, origin: Origin) -> bool:
        """Sends to all. A listener without room is never waited for: it misses whole messages, never parts of one."""
        if isinstance(item, Wire):
            speaker = self._speaker()
            return speaker is not None and speaker.emit(item, origin)
        said = self._leader is not None and self._leader.emit(item, origin)
        for member in self._others():
            if self._keeps_up(member, item):
                said = member.emit(item, origin) or said
        return said

    def _keeps_up(self, member: Output, item: Item) -> bool:
        if self._leader is None:
            return True
        if not isinstance(item, Text) or item.starts:
            if member in self._lagging:
                self._lagging.remove(member)
            if member.room <= 0:
                self._lagging.append(member)
        return member not in self._lagging

    def admit(self, tool: ToolCall, ask: bool) -> Admission:
        """The leader's protocol decides; with nobody there the tool just runs."""
        speaker = self._speaker()
        return Admission.INLINE if speaker is None else speaker.admit(tool, ask)

    def ask(self, need: Need, ticket: Ticket, origin: Origin) -> bool:
        """Asks one client, never two."""
        speaker = self._speaker()
        return speaker is not None and speaker.ask(need, ticket, origin)

    def withdraw(self, ticket: Ticket) -> None:
        """Tells whoever may have been asked."""
        for member in [*([self._leader] if self._leader else []), *self._members()]:
            member.withdraw(ticket)

    def parked(self, open: Sequence[Ticket]) -> None:
        """Concerns the leader alone."""
        if self._leader is not None:
            self._leader.parked(open)

    def end(self, how: Stop | Fail) -> None:
        """Concerns the leader alone."""
        if self._leader is not None:
            self._leader.end(how)

    def _speaker(self) -> Output | None:
        if self._leader is not None:
            return self._leader
        members = self._members()
        return members[-1] if members else None


_PLENTY = 1024
