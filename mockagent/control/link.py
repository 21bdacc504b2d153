"""The link between a `MockAgent` object and the processes that its clients start: frames, and the process's end of it.

A process that was started with `--link` dials the object back, gets its scenario from there, tells it everything that
its taps see, and does what it is told. Whatever happens to one side ends the other's interest, and never its life in
disorder. The object's end is `control.troupe`.

A frame is a MessagePack list behind its length in four bytes. The process says first `hello TOKEN PID`, and is
answered with what to play; then it sends events, and answers to commands by their number.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
import trio

from mockagent.message import NO_ID, Burst, Direction, Fate, Message, Peer
from mockagent.scenario.packed import unpack_value

if TYPE_CHECKING:
    from mockagent.control.desk import Desk
    from mockagent.host import Host

LARGEST = 1 << 30
"""Bytes of a frame."""

PATIENCE = 10.0
"""Seconds in which the object has to answer a process that starts, and to take what it says at its end."""

NO_OBJECT = 2
"""Exit status when there is nobody to dial."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


def frame(value: list[Any]) -> bytes:
    """The bytes of a frame. Text that has no UTF-8 form, and numbers that are too long, are written out."""
    try:
        data = _encode(value)
    except (UnicodeEncodeError, OverflowError, TypeError):
        data = _encode(_tame(value))
    return len(data).to_bytes(4, "big") + data


def _tame(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, list | tuple):
        return [_tame(item) for item in value]
    if isinstance(value, dict):
        return {str(_tame(key)): _tame(item) for key, item in value.items()}
    if value is None or isinstance(value, bytes | bool | float) or (isinstance(value, int) and abs(value) < 2**63):
        return value
    return repr(value)


class Frames:
    """Takes bytes, cut anywhere, and gives frames."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes | bytearray) -> Iterator[list[Any]]:
        """The frames that these bytes complete.

        Raises:
            ValueError: this is no frame of ours.
        """
        self._data += data
        while len(self._data) >= 4:
            end = 4 + int.from_bytes(self._data[:4], "big")
            if end > LARGEST:
                raise ValueError("a frame that is too large")
            if len(self._data) < end:
                return
            value = _decode(bytes(self._data[4:end]))
            del self._data[:end]
            if not isinstance(value, list) or not value:
                raise ValueError("a frame that is no list")
            yield value


class Link:
    """A process's end: a tap that tells the object what happens, and the task that does what the object says.

    What a tap sees is on its way before the bytes that it saw leave for the client, so that the object never knows
    less than the client.

    Args:
        sock: connected to the object.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._host: Host | None = None
        self._out = bytearray()
        self._more = trio.Event()
        self._gone = False
        self.welcome: list[Any] = []

    def open(self, token: str) -> None:
        """Says hello, and waits for what to play.

        Raises:
            OSError, ValueError: nobody answers, or not as the object does.
        """
        self._sock.settimeout(PATIENCE)
        self._sock.sendall(frame(["hello", token, os.getpid()]))
        frames = Frames()
        while not self.welcome:
            data = self._sock.recv(1 << 16)
            if not data:
                raise ValueError("it does not know this process")
            # The object says nothing behind its welcome before this process has said that it is ready.
            self.welcome = next(frames.feed(data), [])
        self._sock.setblocking(False)

    # --- telling

    def _tell(self, *event: Any) -> None:
        if self._gone:
            return
        told = self._host.clock.now() if self._host is not None else None
        self._out += frame([told, *event])
        self._push()

    def _push(self) -> None:
        """Writes what the socket takes; the rest is the writer task's."""
        try:
            del self._out[: self._sock.send(self._out)]
        except BlockingIOError:
            pass
        except OSError:
            self._gone = True
        if self._out:
            self._more.set()

    async def _write(self) -> None:
        while True:
            await self._more.wait()
            self._more = trio.Event()
            while self._out and not self._gone:
                await trio.lowlevel.wait_writable(self._sock)
                self._push()

    def saw(self, message: Message, direction: Direction, fate: Fate) -> None:
        """See `Tap`."""
        id = [] if message.id is NO_ID else [message.id]
        self._tell(
            "saw", _peer(message.peer), direction, fate.value, message.kind, message.neutral, message.text,
            message.session, id, message.method, message.origin, list(message.damaged),
        )  # fmt: skip

    def saw_burst(self, burst: Burst) -> None:
        """See `Tap`."""
        self._tell("burst", _peer(burst.peer), burst.kind, burst.neutral, burst.session, burst.origin, burst.texts)

    def malformed(self, peer: Peer, data: bytes, why: str) -> None:
        """See `Tap`."""
        self._tell("malformed", _peer(peer), data, why)

    def note(self, event: str, peer: Peer | None, session: str | None, detail: dict[str, Any]) -> None:
        """See `Tap`."""
        self._tell("note", event, _peer(peer) if peer is not None else None, session, detail)

    def lost(self, peer: Peer, count: int) -> None:
        """See `Tap`."""
        self._tell("lost", _peer(peer), count)

    def close(self) -> None:
        """See `Tap`. The process ends: everything has to leave now."""
        self._tell("end")
        with suppress(OSError):
            self._sock.settimeout(PATIENCE)
            self._sock.sendall(self._out)
            self._sock.close()
        self._gone = True

    # --- doing

    async def run(self, host: Host, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Does what the object says, until it ends: then this process ends too.

        Args:
            host: plays here.
            task_status: told when the state of the object is this process's too.
        """
        from mockagent.control.desk import Desk

        self._host = host
        desk = Desk(host)
        host.fired = lambda id: self._tell("fired", id, host.engine.counted(host.armed[id]))
        for name, *arguments in self.welcome[2]:
            await COMMANDS[name](desk, *arguments)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._write)
            self._tell("ready")
            task_status.started()
            await self._obey(desk)
        host.exit(0)

    async def _obey(self, desk: Desk) -> None:
        frames = Frames()
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(self._sock))
        while True:
            try:
                data = await stream.receive_some(1 << 16)
            except trio.BrokenResourceError:
                data = b""
            if not data:
                desk.host.exit(0)
            for number, name, *arguments in frames.feed(data):
                if name == "end":
                    desk.host.exit(0)
                try:
                    answer = [True, await COMMANDS[name](desk, *arguments)]
                except (LookupError, ValueError) as error:
                    answer = [False, str(error)]
                self._tell("answer", number, *answer)


def _peer(peer: Peer) -> list[str]:
    return [peer.id, peer.protocol, peer.transport]


# --- commands


async def _sync(desk: Desk) -> None:
    """That this is answered says that everything before it has arrived."""


async def _arm(desk: Desk, id: str, fault: bytes, counted: dict[str, Any]) -> None:
    made = unpack_value(fault)
    desk.host.arm(made, id)
    desk.host.engine.recall(made, counted)


async def _disarm(desk: Desk, id: str | None) -> None:
    desk.host.disarm(id)


async def _push(desk: Desk, session: str, steps: bytes) -> bool:
    return desk.push_here(session, unpack_value(steps))


async def _advance(desk: Desk, seconds: float) -> None:
    await desk.advance(seconds)


async def _reset(desk: Desk, scenario: bytes | None) -> None:
    await desk.reset(None if scenario is None else unpack_value(scenario))


async def _sessions(desk: Desk) -> list[dict[str, Any]]:
    return await desk.sessions()


COMMANDS: dict[str, Callable[..., Awaitable[Any]]] = {
    "sync": _sync,
    "arm": _arm,
    "disarm": _disarm,
    "push": _push,
    "advance": _advance,
    "reset": _reset,
    "sessions": _sessions,
}


# --- the process


def run_linked(address: str) -> int:
    """Plays what a `MockAgent` object wants, over stdin and stdout; returns the exit status.

    Args:
        address: `HOST:PORT/TOKEN`, as the object has written it into its `stdio_command`.
    """
    from mockagent.host import Options, run_stdio
    from mockagent.net.stdio import fill_standard_files

    fill_standard_files()
    place, _, token = address.partition("/")
    host, _, port = place.rpartition(":")
    try:
        sock = socket.create_connection((host, int(port)), PATIENCE)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link = Link(sock)
        link.open(token)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"mockagent: the MockAgent that this command belongs to is not there ({error})\n")
        return NO_OBJECT
    scenario, options, _, folder = link.welcome
    with suppress(OSError):  # it may be gone by now
        os.chdir(folder)  # where the paths in the scenario were written
    return run_stdio(unpack_value(scenario), Options(**options, quiet=True), link.run, taps=[link])
