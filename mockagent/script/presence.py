"""Who is there: the clients that have a session open, and those that would hear of one which nobody has opened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from mockagent.message import Peer
from mockagent.script.audience import Audience
from mockagent.script.output import Output
from mockagent.world.sessions import Session

Visit = Callable[[Session], Output]
"""Makes the output of a client to a session that it has not opened."""


class Presence:
    """Keeps the audience of every session.

    Args:
        running: whether a turn runs in a session.
    """

    def __init__(self, running: Callable[[Session], bool]) -> None:
        self._running = running
        self._members: dict[str, list[Output]] = {}
        self._visitors: list[Visit] = []

    def join(self, session: Session, out: Output) -> None:
        """Adds somebody to the audience of a session; a client's second output takes the place of its first."""
        members = self._members.setdefault(session.id, [])
        members[:] = [member for member in members if not member.same_client(out)]
        members.append(out)

    def leave(self, out: Output, session_id: str) -> None:
        """Takes a client out of the audience of a session."""
        members = self._members.get(session_id, [])
        members[:] = [member for member in members if not member.same_client(out)]
        if not members:
            self._members.pop(session_id, None)

    def visit(self, make: Visit) -> Callable[[], None]:
        """Somebody is there who also hears of sessions that nobody has opened.

        Returns:
            A function that ends the visit.
        """
        self._visitors.append(make)
        return partial(self._visitors.remove, make)

    def audience(self, session: Session, leader: Output | None = None) -> Audience:
        """Everybody who has the session open, whoever that is by then."""
        return Audience(partial(self._present, session), leader)

    def _present(self, session: Session) -> Sequence[Output]:
        """Those who have it open; of a session that is not open (a row in a list) every visitor hears."""
        members = self._members.get(session.id, ())
        if not members and session.state in ("stored", "closed") and not self._running(session):
            return [make(session) for make in self._visitors]
        return members

    def member(self, session: Session, peer: Peer) -> Output | None:
        """The output of one client that has the session open."""
        return next((member for member in self._members.get(session.id, ()) if member.peer is peer), None)

    def last(self, session: Session) -> Peer | None:
        """Who opened the session last."""
        members = self._members.get(session.id)
        return members[-1].peer if members else None

    @property
    def sessions(self) -> list[str]:
        """Ids of the sessions that somebody has open."""
        return list(self._members)

    def dismiss(self, session: Session) -> None:
        """Nobody has the session open any more."""
        self._members.pop(session.id, None)

    def clear(self) -> None:
        """Nobody has any session open. Visitors stay."""
        self._members.clear()
