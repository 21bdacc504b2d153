"""Everything that leaves one connection, before it is in a line: what faults make of it, and which line it takes.

One for each connection, however many channels that has: holding a message until another has left, steps that play
before a message, and ids that a fault has changed concern the connection as a whole. All of it is synchronous.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from mockagent.faults.interface import Act, Delay, Drop, Hold, Life, Pass, Play, Reply
from mockagent.message import NO_ID, Burst, Fate, Message, Peer
from mockagent.net.channel import Cut
from mockagent.wire.line import Director, Line

if TYPE_CHECKING:
    from mockagent.script.output import Wire

Routing = Callable[["str | None", "Message | None"], Line]
"""The line for a session and a message; without a message, the one its updates take."""

Sink = Callable[[Message], None]


class Outgoing:
    """The way out of one connection.

    Args:
        peer: who is at the other end.
        director: faults, taps, and the rest of the world.
        route: picks the line; a `Line` alone stands for a connection with one channel.
    """

    def __init__(self, peer: Peer, director: Director, route: Routing | Line) -> None:
        self.peer = peer
        self._director = director
        self._route: Routing = route if not isinstance(route, Line) else lambda session, message: route
        self._held: list[tuple[str, str | None, object, Callable[[], None]]] = []
        self._new_id: Callable[[Any, Any], object] | None = None
        self._owed = 0
        self._last: tuple[Line, Cut] | None = None

    @property
    def owes(self) -> bool:
        """Whether a fault holds something back that has still to leave."""
        return self._owed > 0

    def line(self, session: str | None) -> Line:
        """The line that a session's updates take."""
        return self._route(session, None)

    # --- sending

    def send(self, message: Message, sink: Sink | None = None) -> None:
        """A rendered message is on its way out.

        Args:
            message: what is to leave.
            sink: takes what is left of it in place of a line (members of a batch).
        """
        put = self._put if sink is None else sink
        if message.faultable and self._director.faults.watches(message.kind, message.neutral):
            self._act(message, self._director.faults.leaving(message), put)
        else:
            put(message)
            self._sent(message)
        if message.method and message.kind.startswith("reply:"):
            self._release("reply", message.method, but=message.id)

    def send_burst(self, burst: Burst) -> None:
        """Many messages of one kind; with a fault watching them they go one by one."""
        if burst.origin != "fault" and self._director.faults.watches(burst.kind, burst.neutral):
            for message in burst.messages():
                self.send(message)
        else:
            self._route(burst.session, None).put_burst(burst)

    def _put(self, message: Message) -> None:
        self._route(message.session, message).put(message)

    def _sent(self, message: Message) -> None:
        """What has to follow a message follows the first copy of it that leaves."""
        follow, message.follow = message.follow, None
        if follow is not None:
            follow()

    def _act(self, message: Message, acts: Sequence[Act], put: Sink) -> None:
        for index, act in enumerate(acts):
            if isinstance(act, Pass):
                self._pass(message, act.message, put)
            elif isinstance(act, Drop | Reply):
                self._director.taps.saw(message, "out", Fate.UNSENT)
            elif isinstance(act, Delay):
                self._route(message.session, message).hold_back(act.span)
            elif isinstance(act, Hold):
                self._owed += act.until != "never"
                self.hold(act, partial(self._pass_late, message, act, put))
            elif isinstance(act, Play):
                # What stands behind the steps waits for them; other messages pass.
                rest = partial(self._act_late, message, acts[index + 1 :], put)
                if not self._director.play(act.steps, message, rest):
                    self._owed += 1
                    return
            elif isinstance(act, Life):
                self.live(act, message.session, message)

    def _pass(self, before: Message, after: Message, put: Sink) -> None:
        if after is not before and before.kind.startswith("request:"):
            self._renamed(before, after)
        put(after)
        self._sent(before)

    def _pass_late(self, message: Message, act: Hold, put: Sink) -> None:
        self._owed -= 1
        self._pass(message, act.message, put)
        self._end_if_due()

    def _act_late(self, message: Message, acts: Sequence[Act], put: Sink) -> None:
        self._owed -= 1
        self._act(message, acts, put)
        self._end_if_due()

    def _renamed(self, before: Message, after: Message) -> None:
        """The answer will carry the id that really left."""
        id = after.data.get("id", NO_ID) if isinstance(after.data, dict) else NO_ID
        if id is not NO_ID and id != before.id and self._new_id is not None:
            self._new_id(before.id, id)

    def on_new_id(self, call: Callable[[Any, Any], object]) -> None:
        """Calls with the old and the new id when a fault lets a request of ours leave under another one."""
        self._new_id = call

    # --- holding, room, ends

    def room_for(self, session: str | None) -> int:
        """How many more messages of a session may come before its turn has to pause."""
        return self._route(session, None).room

    def hold(self, act: Hold, call: Callable[[], None]) -> None:
        """Calls when what a message is held for has come; `release` tells of events."""
        if not isinstance(act.until, str):
            self._director.later(act.until, call)
            return
        name = act.message.method if act.until == "reply" else act.message.session
        self._held.append((act.until, name, act.message.id, call))

    def release(self, event: str, name: str | None = None) -> None:
        """Lets go of what is held until an event.

        Args:
            event: `turn_ended`, `next_prompt`.
            name: the session's id.
        """
        self._release(event, name, but=NO_ID)

    def _release(self, event: str, name: str | None, *, but: object) -> None:
        """A reply that is held until another one of its method leaves is not let go by itself."""
        for entry in list(self._held):
            until, wanted, id, call = entry
            if until == event and name == wanted and (but is NO_ID or id != but):
                self._held.remove(entry)
                call()

    def forget(self) -> None:
        """Drops what is held until something happens: it never will."""
        self._held.clear()
        self._owed = 0

    def live(self, act: Life, session: str | None = None, message: Message | None = None) -> None:
        """Something happens to the channel on which the session's messages leave, or to the process.

        What concerns reading happens at once, the rest behind what is queued.
        """
        if act.stall_read is not None:
            self._director.live(Life(stall_read=act.stall_read), self.peer)
            act = replace(act, stall_read=None)
        self._route(session, message).put_life(act)

    def wire(self, item: Wire, session: str) -> None:
        """Carries out a step about the wire, which a fault's own steps have made out already."""
        act = item.payload
        if not isinstance(act, Life):
            from mockagent.faults.life import life_of_step

            act = life_of_step(item.verb, item.payload)
        self.live(act, session)

    def finish(self, how: Cut, session: str | None = None) -> None:
        """The channel ends once all that was sent has left, what faults hold back and what they play included."""
        self._last = (self._route(session, None), how)
        self._end_if_due()

    def _end_if_due(self) -> None:
        if self._last is not None and not self._owed:
            (line, how), self._last = self._last, None
            line.cut(how)
