"""What all connections of one process share: faults, taps, the stage, the agents, and the names of peers.

Knows no protocol and no socket. Bindings take from here what a line and a connection need; `host` puts it together.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any

import trio

from mockagent.faults.interface import Faults, Life
from mockagent.message import Message, Peer, Protocol, Transport
from mockagent.scenario.model import Span, Step
from mockagent.script.agent import Agent
from mockagent.script.pace import draw
from mockagent.script.stage import Stage
from mockagent.watch.tap import Taps
from mockagent.wire.line import Line, Route


class Stall:
    """Holds a reader up while a fault wants it to read nothing."""

    def __init__(self) -> None:
        self._seconds = 0.0

    def begin(self, seconds: float) -> None:
        """The next wait takes so long, in real seconds (`inf`: for ever)."""
        self._seconds = seconds

    async def wait(self) -> None:
        """Returns at once, or when the stall is over."""
        seconds, self._seconds = self._seconds, 0.0
        if seconds:
            await trio.sleep(seconds)


class Backstage:
    """Shared services; also the `Director` of every line.

    Args:
        stage: keeps the time and the order.
        agents: one for each scenario; the first one speaks for the process.
        faults: asked at the five hooks.
        taps: shown everything.
        exit: ends the process with a code, or (negative) by a signal, once what is queued has left.
        chance: generator for draws that belong to no session.
    """

    def __init__(
        self,
        stage: Stage,
        agents: Sequence[Agent],
        faults: Faults,
        taps: Taps,
        *,
        exit: Callable[[int], None],
        chance: Random,
    ) -> None:
        self.stage = stage
        self.agents = list(agents)
        self.faults = faults
        self.taps = taps
        self.exit = exit
        self.lines: dict[str, Line] = {}
        self._stalls: dict[str, Stall] = {}
        self._chance = chance
        self._peers = 0
        self._turned = trio.Event()
        for agent in self.agents:
            agent.on_event.append(self._saw_event)

    def _saw_event(self, event: str, session: str | None) -> None:
        if event == "turn_ended":
            self._turned.set()
            self._turned = trio.Event()

    def peer(self, protocol: Protocol, transport: Transport) -> Peer:
        """The name of a new connection."""
        self._peers += 1
        return Peer(f"c{self._peers}", protocol, transport)

    def complain(self, text: str) -> None:
        """One line for the person at the terminal."""
        sys.stderr.write(f"mockagent: {text}\n")

    # --- for lines (wire.line.Director)

    def play(
        self, steps: Sequence[Step], session: str | None, message: Message | None, then: Callable[[], None]
    ) -> bool:
        """Plays the steps of a fault in a session, at once as far as that goes. See `Director.play`."""
        for agent in self.agents:
            found = agent.world.sessions.get(session) if session is not None else None
            if found is None:
                continue
            data = message.data if message is not None else None
            run = agent.play(found, steps, origin="fault", message=data, at_once=True)
            if run.done:
                return True
            run.on_done = then
            return False
        peer = message.peer if message is not None else None
        self.taps.note("skipped", peer, session, why="there is no session to play the steps of a fault in")
        return True

    def later(self, span: Span, call: Callable[[], None]) -> Callable[[], None]:
        """Calls after a logical wait; returns what calls it off."""
        return self.stage.after(draw(span, self._chance), call).cancel

    def live(self, act: Life, peer: Peer) -> None:
        """Does to the process, or to the reading side of a peer, what a fault asks."""
        if act.stderr is not None:
            self._drip(act.stderr, act.stderr_every)
        if act.stall_read is not None and peer.id in self._stalls:
            self._stalls[peer.id].begin(act.stall_read)
        if act.exit is not None:
            self.exit(act.exit)

    def _drip(self, text: str, every: Span | None) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()
        if every is not None:
            self.stage.after(draw(every, self._chance), partial(self._drip, text, every), endless=True)

    # --- for bindings

    def point(self, point: str, route: Route, peer: Peer, session: str | None = None) -> Life | None:
        """A point in life has come: whatever a fault wants to happen there is done to the channel.

        Returns:
            What it was; the caller looks at `ignore`.
        """
        life = self.faults.lifecycle(point, peer, session)
        if life is not None:
            route.live(life, session)
        return life

    def arrive(self, peer: Peer, line: Line) -> Stall:
        """A peer is there.

        Returns:
            What its reader waits on between two reads, so that a fault can make it stop.
        """
        self.lines[peer.id] = line
        self.note("connected", peer)
        stall = self._stalls[peer.id] = Stall()
        self.point("connected", line, peer)
        return stall

    def depart(self, peer: Peer, **detail: Any) -> None:
        """The peer is gone."""
        self.faults.lifecycle("closed", peer)
        self._stalls.pop(peer.id, None)
        self.lines.pop(peer.id, None)
        self.note("closed", peer, **detail)
        self.taps.flush()

    def connection_id(self) -> str:
        """A name for a connection that the client gets to know."""
        return f"conn_{self._chance.getrandbits(64):016x}"

    async def quiet(self) -> None:
        """Waits until no turn runs anywhere and the stage has nothing ready."""
        while any(agent.busy for agent in self.agents):
            await self._turned.wait()
        await trio.lowlevel.checkpoint()

    def wake(self) -> None:
        """There is room again somewhere."""
        self.stage.wake()

    def note(self, event: str, peer: Peer | None = None, session: str | None = None, **detail: Any) -> None:
        """A line in the journal."""
        self.taps.note(event, peer, session, **detail)
