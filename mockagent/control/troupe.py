"""One mock in many processes: the host of a `MockAgent` object, and the processes that its clients have started.

All of them feed the taps of the host, so that there is one journal and one verdict; every control acts on all of them,
and on those that start later. The other end of the links is `control.link`.
"""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from hmac import compare_digest
from typing import TYPE_CHECKING, Any

import msgspec
import trio

from mockagent.control.desk import Desk
from mockagent.control.link import Frames, frame
from mockagent.message import NO_ID, Burst, Fate, Message, Peer
from mockagent.scenario import model
from mockagent.scenario.packed import pack_value

if TYPE_CHECKING:
    from mockagent.host import Host

STRANGER = 10.0
"""Seconds in which whoever dials has to say who it is."""

SILENT = 10.0
"""Seconds after which a process that does not answer a command counts as stuck."""

FAREWELL = 2.0
"""Seconds in which processes have to be gone at the end, before they are killed."""

_decode = msgspec.json.Decoder().decode


class Player:
    """A process that plays."""

    def __init__(self, stream: trio.SocketStream, pid: int) -> None:
        self.pid = pid
        self.ready = trio.Event()
        self.gone = trio.Event()
        self.peers: dict[str, Peer] = {}
        self.waiting: dict[int, Answer] = {}
        self.ended = False
        self.signalled = False
        self._stream = stream
        self._lock = trio.Lock()
        self._number = 0

    async def send(self, value: list[Any]) -> None:
        """Sends a frame; to a process that is gone it is lost."""
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            async with self._lock:
                await self._stream.send_all(frame(value))

    async def ask(self, name: str, *arguments: Any) -> Any:
        """Gives a command and waits until it has been carried out; None if the process ends before.

        Raises:
            LookupError: the process could not do it.
            RuntimeError: it does not answer.
        """
        self._number += 1
        number = self._number
        answer = self.waiting[number] = Answer()
        with trio.move_on_after(SILENT) as patience:
            await self.ready.wait()
            if not self.gone.is_set():
                await self.send([number, name, *arguments])
                await answer.there.wait()
        self.waiting.pop(number, None)
        if patience.cancelled_caught:
            raise RuntimeError(f"the agent process {self.pid} does not answer")
        if answer.failed is not None:
            raise LookupError(answer.failed)
        return answer.value

    def leave(self) -> None:
        """It is gone: nobody waits for it any more."""
        self.gone.set()
        self.ready.set()
        for answer in self.waiting.values():
            answer.there.set()


class Answer:
    """What becomes of a command."""

    def __init__(self) -> None:
        self.there = trio.Event()
        self.value: Any = None
        self.failed: str | None = None


class Troupe(Desk):
    """The controls of a host and of all processes that belong to it.

    Args:
        host: judges, keeps the journal, and plays to those who connect over the network.
        options: for the processes.

    Attributes:
        token: what a process has to know.
        players: the processes that are there.
    """

    def __init__(self, host: Host, options: dict[str, Any]) -> None:
        super().__init__(host)
        self.token = secrets.token_urlsafe(18)
        self.players: list[Player] = []
        self._options = options
        self._folder = os.getcwd()
        self._faults: dict[str, bytes] = {}
        self._counted: dict[str, dict[str, Any]] = {}
        self._told: list[list[Any]] = []

    # --- processes

    async def attend(self, stream: trio.SocketStream) -> None:
        """Looks after one process for as long as it is there."""
        frames = Frames()
        player: Player | None = None
        try:
            with trio.move_on_after(STRANGER) as patience:
                async for data in stream:
                    for value in frames.feed(data):
                        if player is None:
                            player = self._admit(stream, value)
                            patience.deadline = float("inf")
                            await player.send(self._welcome())
                        else:
                            self._hear(player, value)
                    self.host.taps.flush()
        except (trio.BrokenResourceError, trio.ClosedResourceError, ValueError, msgspec.MsgspecError):
            pass  # killed, or a stranger
        finally:
            if player is not None:
                self._left(player)
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(stream)

    def _admit(self, stream: trio.SocketStream, hello: list[Any]) -> Player:
        match hello:
            case ["hello", str(token), int(pid)] if compare_digest(token.encode(), self.token.encode()):
                player = Player(stream, pid)
                self.players.append(player)
                return player
        raise ValueError("a stranger")

    def _welcome(self) -> list[Any]:
        armed = [["arm", id, fault, self._counted.get(id, {})] for id, fault in self._faults.items()]
        return [pack_value(self.host.scenarios[0]), self._options, [*armed, *self._told], self._folder]

    def _left(self, player: Player) -> None:
        """A process is gone. What was open is closed, as far as it could not say so itself."""
        self.players.remove(player)
        player.leave()
        by = {"by": "agent"} if player.ended and not player.signalled else {} if player.ended else {"killed": True}
        for peer in player.peers.values():
            self.host.taps.note("closed", peer, None, **by)
        self.host.taps.flush()

    def _hear(self, player: Player, value: list[Any]) -> None:
        told, name, *rest = value
        if name == "ready":
            player.ready.set()
        elif name == "end":
            player.ended = True
        elif name == "fired":
            self._counted[rest[0]] = rest[1]
        elif name == "answer":
            self._answered(player, *rest)
        else:
            self.host.told = told
            try:
                _EVENTS[name](self, player, *rest)
            finally:
                self.host.told = None

    def _answered(self, player: Player, number: int, well: bool, value: Any) -> None:
        answer = player.waiting.get(number)
        if answer is not None:
            if well:
                answer.value = value
            else:
                answer.failed = str(value)
            answer.there.set()

    # --- what they tell

    def _peer(self, player: Player, told: list[Any]) -> Peer:
        """A connection under a name that is unique here."""
        id, protocol, transport = told
        peer = player.peers.get(id)
        if peer is None:
            peer = player.peers[id] = self.host.backstage.peer(protocol, transport)
        return peer

    def _saw(
        self, player: Player, peer: list[Any], direction: Any, fate: str, kind: str, neutral: str | None, raw: bytes,
        session: str | None, id: list[Any], method: str, origin: Any, damaged: list[str],
    ) -> None:  # fmt: skip
        message = Message(
            kind, _json(raw), self._peer(player, peer), neutral=neutral, raw=raw, session=session,
            id=id[0] if id else NO_ID, method=method, origin=origin, damaged=tuple(damaged),
        )  # fmt: skip
        self.host.taps.saw(message, direction, Fate(fate))

    def _burst(
        self, player: Player, peer: list[Any], kind: str, neutral: str, session: str, origin: Any, texts: list[bytes]
    ) -> None:
        self.host.taps.saw_burst(Burst(kind, neutral, self._peer(player, peer), session, origin, texts))

    def _malformed(self, player: Player, peer: list[Any], data: bytes, why: str) -> None:
        self.host.taps.malformed(self._peer(player, peer), data, why)

    def _note(
        self, player: Player, event: str, peer: list[Any] | None, session: str | None, detail: dict[str, Any]
    ) -> None:
        known = self._peer(player, peer) if peer is not None else None
        self.host.taps.note(event, known, session, **detail)
        if event == "closed" and peer is not None:
            player.peers.pop(peer[0], None)
        elif event == "signal":
            player.signalled = True

    def _lost(self, player: Player, peer: list[Any], count: int) -> None:
        self.host.taps.lost(self._peer(player, peer), count)

    # --- the controls

    async def _all(self, name: str, *arguments: Any) -> list[Any]:
        """Has a command carried out by every process."""
        answers: list[Any] = []

        async def ask(player: Player) -> None:
            answers.append(await player.ask(name, *arguments))

        for player in list(self.players):  # one behind the other: a failure is then one error, not a group
            await ask(player)
        return answers

    async def sync(self) -> None:
        """Returns when everything that has happened so far, in any process, is in the journal."""
        await self._all("sync")

    async def sessions(self) -> list[dict[str, Any]]:
        """The sessions of all processes; where several know one, as the youngest process sees it."""
        rows = {row["id"]: row for row in await super().sessions()}
        for answer in await self._all("sessions"):
            for row in answer or ():
                rows.pop(row["id"], None)
                rows[row["id"]] = row
        return sorted(rows.values(), key=lambda row: str(row["updatedAt"] or ""), reverse=True)

    async def push(self, session: str, steps: Sequence[model.Step]) -> None:
        """See `Desk.push`."""
        packed = pack_value(tuple(steps))
        found = [self.push_here(session, steps), *await self._all("push", session, packed)]
        if not any(found):
            raise await self._no_session(session)
        self._told.append(["push", session, packed])

    async def arm(self, fault: model.Fault) -> str:
        """See `Desk.arm`."""
        id = self.host.arm(fault)
        self._faults[id] = pack_value(fault)
        await self._all("arm", id, self._faults[id], {})
        return id

    async def disarm(self, id: str | None = None) -> bool:
        """See `Desk.disarm`."""
        found = self.host.disarm(id)
        for gone in list(self._faults) if id is None else [id]:
            self._faults.pop(gone, None)
        await self._all("disarm", id)
        return found

    async def advance(self, seconds: float) -> None:
        """See `Desk.advance`."""
        await super().advance(seconds)
        await self._all("advance", float(seconds))
        self._told.append(["advance", float(seconds)])

    async def reset(self, scenario: model.Scenario | None = None, agent: str | None = None) -> None:
        """See `Desk.reset`."""
        self._with(scenario, agent)
        packed = None if scenario is None else pack_value(scenario)
        await self._all("reset", packed)
        self._faults.clear()
        self._counted.clear()
        self._told.clear()
        await super().reset(scenario, agent)

    async def end(self) -> None:
        """Ends every process: in order, and those that are stuck by force."""
        players = list(self.players)
        async with trio.open_nursery() as nursery:
            for player in players:
                nursery.start_soon(self._dismiss, player)

    async def _dismiss(self, player: Player) -> None:
        with trio.move_on_after(FAREWELL):
            await player.send([0, "end"])
            await player.gone.wait()
        if not player.gone.is_set():  # its link is open, so the number is still its own
            with suppress(ProcessLookupError, PermissionError):
                os.kill(player.pid, getattr(signal, "SIGKILL", signal.SIGTERM))
            with trio.move_on_after(FAREWELL):
                await player.gone.wait()


_EVENTS: dict[str, Any] = {
    "saw": Troupe._saw,
    "burst": Troupe._burst,
    "malformed": Troupe._malformed,
    "note": Troupe._note,
    "lost": Troupe._lost,
}


def _json(raw: bytes) -> Any:
    """The JSON of a message as it came; None where a scenario has sent something that is none."""
    try:
        return _decode(raw)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


async def listen(troupe: Troupe, task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED) -> None:
    """Waits for processes that dial, for ever.

    Args:
        troupe: looks after them.
        task_status: gets what goes into the command line of such a process.
    """
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    serve = partial(trio.serve_listeners, troupe.attend, listeners)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        task_status.started(f"127.0.0.1:{port}/{troupe.token}")
