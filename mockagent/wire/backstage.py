"""What all connections of one process share: faults, taps, the stage, the agents, and the names of peers.

Knows no protocol and no socket. Bindings take from here what a line and a connection need; `host` puts it together.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any, TypeVar

import trio

from mockagent.faults.interface import Faults, Life
from mockagent.message import Message, Peer, Protocol, Transport
from mockagent.scenario.model import Span, Step
from mockagent.script.agent import Agent
from mockagent.script.pace import draw
from mockagent.script.stage import Stage
from mockagent.watch.stderr import to_stderr
from mockagent.watch.tap import Taps
from mockagent.wire.line import Line
from mockagent.wire.outgoing import Outgoing
from mockagent.world.sessions import Session

T = TypeVar("T")
_NOBODY = Peer("", "acp", "memory")


def _nothing_to_keep(final: bool) -> None:
    """Without a state file nothing is kept."""


class Stall:
    """Holds a reader up while a fault wants it to read nothing."""

    def __init__(self) -> None:
        self._until = -math.inf
        self._reading: trio.CancelScope | None = None

    def begin(self, seconds: float) -> None:
        """Nothing is read from now on for so long, in real seconds (`inf`: for ever)."""
        self._until = trio.current_time() + seconds
        if self._reading is not None:
            self._reading.cancel()

    async def wait(self) -> None:
        """Returns when nothing holds the reader up."""
        await trio.sleep_until(self._until)

    async def during(self, read: Callable[[], Awaitable[T]]) -> T:
        """Reads, but not while a stall lasts; one that begins meanwhile interrupts the reading."""
        while True:
            await self.wait()
            with trio.CancelScope() as self._reading:
                return await read()


class StallingStream(trio.abc.ReceiveStream):
    """A stream that a stall can keep from being read."""

    def __init__(self, stream: trio.abc.ReceiveStream, stall: Stall) -> None:
        self._stream = stream
        self._stall = stall

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """See trio."""
        return bytes(await self._stall.during(partial(self._stream.receive_some, max_bytes)))

    async def aclose(self) -> None:
        """See trio."""
        await self._stream.aclose()


class Backstage:
    """Shared services; also the `Director` of every line.

    Args:
        stage: keeps the time and the order.
        agents: one for each scenario; the first one speaks for the process.
        faults: asked at the five hooks.
        taps: shown everything.
        exit: ends the process with a code, or (negative) by a signal, once what is queued has left.
        chance: generator for draws that belong to no session.

    Attributes:
        tasks: where whoever has to wait for the outside world may do so; None: there is no event loop.
        partings: called with seconds before everything begins anew: whoever is connected over the network is asked to
            go, and made to after that time. They return when nobody is left.
        keep: called before anything leaves (whether that is complete), and when nothing is going on; `host` puts the
            state file here.
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
        self.tasks: trio.Nursery | None = None
        self.connections: dict[str, Outgoing] = {}
        self._stalls: dict[str, Stall] = {}
        self._chance = chance
        self._names = Random(chance.getstate()[1][0])  # takes nothing from the chances of faults
        self._peers = 0
        self.partings: list[Callable[[float], Awaitable[None]]] = []
        self.on_restart: list[Callable[[], None]] = []
        self.keep: Callable[[bool], None] = _nothing_to_keep
        self._rest = trio.Event()
        self._open = trio.Event()
        self._open.set()
        self._stirred = False
        self._waiting: set[Line] = set()
        stage.rested = self.rested
        for agent in self.agents:
            agent.on_event.append(self._saw_event)
            agent.process = self._step

    def _saw_event(self, event: str, session: str | None) -> None:
        if event == "turn_ended":
            for out in list(self.connections.values()):
                out.release("turn_ended", session)

    def _step(self, verb: str, payload: Any) -> None:
        from mockagent.faults.life import life_of_step

        self.live(life_of_step(verb, payload), _NOBODY)

    def peer(self, protocol: Protocol, transport: Transport) -> Peer:
        """The name of a new connection."""
        self._peers += 1
        return Peer(f"c{self._peers}", protocol, transport)

    def complain(self, text: str) -> None:
        """One line for the person at the terminal."""
        to_stderr(text)

    # --- for lines (wire.line.Director)

    def play(self, steps: Sequence[Step], message: Message, then: Callable[[], None]) -> bool:
        """Plays the steps of a fault, at once as far as that goes. See `wire.line.Director.play`."""
        agent, session = self.find(message.session)
        if agent is None or session is None:
            self.taps.note("skipped", message.peer, message.session, why="no session to play the steps of a fault in")
            return True
        run = agent.play(session, steps, origin="fault", message=message.data, at_once=True, to=message.peer)
        if run.done:
            return True
        run.on_done = then
        return False

    def find(self, session: str | None) -> tuple[Agent, Session] | tuple[None, None]:
        """A session of that id, and whose it is."""
        for agent in self.agents:
            found = agent.world.sessions.get(session) if session is not None else None
            if found is not None:
                return agent, found
        return None, None

    def later(self, span: Span, call: Callable[[], None]) -> Callable[[], None]:
        """Calls after a logical wait; returns what calls it off."""
        return self.stage.after(draw(span, self._chance), call).cancel

    def live(self, act: Life, peer: Peer) -> None:
        """Does to the process, or to the reading side of a peer, what a fault asks."""
        if act.stderr is not None:
            self._drip(act.stderr, act.stderr_every)
        if act.child is not None:
            from mockagent.wire.offspring import start

            start(act.child)
        if act.stall_read is not None and peer.id in self._stalls:
            self._stalls[peer.id].begin(act.stall_read)
        if act.exit is not None:
            self.exit(act.exit)

    def _drip(self, text: str, every: Span | None) -> None:
        with suppress(OSError, ValueError):  # the client has closed its end
            sys.stderr.write(text)
            sys.stderr.flush()
        if every is not None:
            self.stage.after(draw(every, self._chance), partial(self._drip, text, every), endless=True)

    def awaits_more(self, line: Line) -> bool:
        """See `wire.line.Director.awaits_more`."""
        if not self._plays:
            return False
        self._waiting.add(line)
        return True

    @property
    def _plays(self) -> bool:
        return any(agent.playing for agent in self.agents)

    # --- for bindings

    def point(self, point: str, out: Outgoing, session: str | None = None) -> Life | None:
        """A point in life has come: whatever a fault wants to happen there is done to the channel.

        Returns:
            What it was; the caller looks at `ignore`.
        """
        life = self.faults.lifecycle(point, out.peer, session)
        if life is not None:
            out.live(life, session)
        return life

    def arrive(self, out: Outgoing, **detail: Any) -> Stall:
        """A peer is there.

        Args:
            out: the way out to it.
            detail: more for the journal's line.

        Returns:
            What its reader waits on before each read, so that a fault can make it stop.
        """
        peer = out.peer
        self.connections[peer.id] = out
        self.note("connected", peer, **detail)
        stall = self.stall(peer)
        self.point("connected", out)
        return stall

    def stall(self, peer: Peer) -> Stall:
        """The same for another exchange of a peer that is there."""
        return self._stalls.setdefault(peer.id, Stall())

    def depart(self, peer: Peer, **detail: Any) -> None:
        """The peer is gone."""
        life = self.faults.lifecycle("closed", peer)
        if life is not None:  # there is no channel any more to put it behind
            self.live(life, peer)
        self._stalls.pop(peer.id, None)
        self.connections.pop(peer.id, None)
        self.note("closed", peer, **detail)
        self.taps.flush()

    def connection_id(self) -> str:
        """A name for a connection that the client gets to know."""
        return f"conn_{self._names.getrandbits(64):016x}"

    async def quiet(self) -> None:
        """Waits until nothing plays anywhere, and no fault holds anything back that will still leave."""
        while any(agent.playing for agent in self.agents) or any(out.owes for out in self.connections.values()):
            await self._rest.wait()

    def commit(self, *, final: bool) -> None:
        """See `wire.line.Director.commit`."""
        self.keep(final)

    def rested(self) -> None:
        """There is nothing to do for now: what the taps hold is written, and whoever waits for quiet looks again."""
        self.keep(True)
        self.taps.flush()
        self._rest.set()
        self._rest = trio.Event()
        if self._waiting and not self._plays:
            for line in self._waiting:
                line.look_again()
            self._waiting.clear()
        if self._stirred and not self._plays:
            self._stirred = False
            for out in list(self.connections.values()):
                self.point("idle", out)

    def start(self) -> None:
        """The process has started and nobody is there yet."""
        self.everywhere("start")

    def everywhere(self, point: str) -> Life | None:
        """A point in the life of the process: what a fault wants is done to every connection, and then to the process.

        Returns:
            What it was; the caller looks at `ignore`.
        """
        life = self.faults.lifecycle(point, None)
        if life is None:
            return None
        for out in list(self.connections.values()):
            out.live(Life(cut=life.cut, stall_write=life.stall_write, stall_read=life.stall_read))
        self.live(life, _NOBODY)
        return life

    def restart(self, faults: Faults, chance: Random) -> None:
        """Everything is as at the start, but for the connections: those that are there forget what they had open."""
        self.faults = faults
        self._chance = chance
        for out in list(self.connections.values()):
            out.forget()
        for call in list(self.on_restart):
            call()
        self.start()

    def write_off(self) -> None:
        """What waits for clients to read it is none of what comes from now on."""
        for out in self.connections.values():
            out.line(None).write_off()

    def shut(self) -> None:
        """Nobody may come in from now on who would meet what is about to end."""
        self._open = trio.Event()

    def reopen(self) -> None:
        """Whoever waits at the door may come in."""
        self._open.set()

    async def opened(self) -> None:
        """Returns at once, unless everything is about to begin anew: then when it has."""
        if not self._open.is_set():
            await self._open.wait()

    def stir(self) -> None:
        """Something has come in: the next rest counts as one again."""
        self._stirred = True

    def wake(self) -> None:
        """There is room again somewhere."""
        self.stage.wake()

    def note(self, event: str, peer: Peer | None = None, session: str | None = None, **detail: Any) -> None:
        """A line in the journal."""
        self.taps.note(event, peer, session, **detail)
