"""Clients that look at single bytes: of a real process over pipes, and of a server over real sockets.

None of them asks the mock what it did: they know what has arrived, in which pieces, when, and how it ended. A pipe is
opened in packet mode, so that every read is one write of the agent; on sockets the time tells writes apart.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import struct
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import h11
import trio

from mockagent.host import Host, Options
from mockagent.message import Burst, Direction, Fate, Message, Peer
from mockagent.net.sse import SseEvent, SseParser
from mockagent.scenario.load import load, load_text
from mockagent.script.driver import drive
from mockagent.site import Settings, Site

Json = dict[str, Any]

ROOT = Path(__file__).parents[2]
CWD = "/home/dev/project"
PATIENCE = 60
"""Seconds after which a test is considered stuck."""

ABLE: Json = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True}
RESET = b"<reset>"
"""Stands at the end of what was read when a RST ended it."""


# --- bytes


class Raw:
    """A connection of which every received piece is kept, with the time at which it came."""

    def __init__(self, receive: Callable[[], Any], send: Callable[[bytes], Any]) -> None:
        self._receive = receive
        self.write = send
        self.pieces: list[tuple[float, bytes]] = []
        self.held = bytearray()
        self.ended: bytes | None = None
        """How it ended: `b""` in order, RESET; None: it has not."""

    @property
    def everything(self) -> bytes:
        """All that has been read."""
        return b"".join(data for _, data in self.pieces)

    async def more(self) -> bool:
        """Reads once. False: that was the end."""
        if self.ended is not None:
            return False
        try:
            data = bytes(await self._receive())
        except trio.BrokenResourceError as error:
            self.ended = RESET if isinstance(error.__cause__, ConnectionResetError) else b"<broken>"
            return False
        except trio.ClosedResourceError:
            self.ended = b""
            return False
        if not data:
            self.ended = b""
            return False
        self.pieces.append((trio.current_time(), data))
        self.held += data
        return True

    async def until(self, mark: bytes) -> bytes | None:
        """What comes, up to the mark and with it; None: it ended before."""
        looked = 0
        while (at := self.held.find(mark, max(0, looked - len(mark)))) < 0:
            looked = len(self.held)
            if not await self.more():
                return None
        return self.take(at + len(mark))

    def take(self, size: int) -> bytes:
        """The next bytes of those that were read."""
        taken = bytes(self.held[:size])
        del self.held[:size]
        return taken

    async def exactly(self, size: int) -> bytes | None:
        """So many bytes; None: it ended before."""
        while len(self.held) < size:
            if not await self.more():
                return None
        return self.take(size)

    async def rest(self) -> bytes:
        """All up to the end; RESET is appended if that was a RST."""
        while await self.more():
            pass
        return self.take(len(self.held)) + (self.ended or b"")

    async def quiet(self, seconds: float = 30) -> bool:
        """Whether nothing comes for so long, and it does not end either."""
        with trio.move_on_after(seconds):
            return not await self.more() and self.ended is None
        return True


# --- messages


class Link(Protocol):
    """One ACP transport."""

    raw: Raw

    async def post(self, text: bytes) -> None: ...

    async def text(self) -> bytes | None: ...


class Client:
    """JSON-RPC over a link; keeps every message that came.

    Attributes:
        answers: results of requests of the agent, by method; what is not there stays without an answer.
    """

    def __init__(self, link: Link) -> None:
        self.link = link
        self.seen: list[Any] = []
        self.answers: dict[str, Any] = {}
        self._ids = 0

    @property
    def raw(self) -> Raw:
        return self.link.raw

    async def send(self, message: Any) -> None:
        await self.link.post(json.dumps(message).encode())

    async def request(self, method: str, **params: Any) -> int:
        """Writes a request and returns its id."""
        self._ids += 1
        await self.send({"jsonrpc": "2.0", "id": self._ids, "method": method, "params": params})
        return self._ids

    async def notify(self, method: str, **params: Any) -> None:
        await self.send({"jsonrpc": "2.0", "method": method, "params": params})

    async def next(self) -> Any:
        """The next message; None at the end. What is no JSON is kept, and returned, as bytes."""
        text = await self.link.text()
        if text is None:
            return None
        try:
            message = json.loads(text)
        except ValueError:
            message = text
        self.seen.append(message)
        await self._answer(message)
        return message

    async def _answer(self, message: Any) -> None:
        if isinstance(message, dict) and "method" in message and "id" in message:
            result = self.answers.get(message["method"])
            if result is not None:
                await self.send({"jsonrpc": "2.0", "id": message["id"], "result": result})

    async def until(self, holds: Callable[[Any], bool]) -> Any:
        """Reads up to a message for which something holds; None: it ended before."""
        while (message := await self.next()) is not None:
            if holds(message):
                return message
        return None

    async def reply(self, id: Any) -> Any:
        """Reads up to the reply to a request."""
        return await self.until(lambda message: is_reply(message, id))

    async def call(self, method: str, **params: Any) -> Any:
        """A request and its reply."""
        return await self.reply(await self.request(method, **params))

    async def initialize(self) -> Any:
        return await self.call(
            "initialize", protocolVersion=1, clientCapabilities=ABLE, clientInfo={"name": "wire", "version": "1"}
        )

    async def new(self, cwd: str = CWD) -> str:
        """A new session's id, after the introduction."""
        if not self._ids:
            await self.initialize()
        reply = await self.call("session/new", cwd=cwd, mcpServers=[])
        id: str = reply["result"]["sessionId"]
        return id

    async def prompt(self, session: str, text: str = "go") -> int:
        """Sends a prompt and returns its id."""
        return await self.request("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])

    async def turn(self, session: str, text: str = "go") -> list[Any]:
        """A whole turn: all that came behind the prompt, its reply last."""
        before = len(self.seen)
        await self.reply(await self.prompt(session, text))
        return self.seen[before:]

    async def cancel(self, session: str) -> None:
        await self.notify("session/cancel", sessionId=session)

    async def rest(self) -> list[Any]:
        """Every message up to the end."""
        before = len(self.seen)
        while await self.next() is not None:
            pass
        return self.seen[before:]

    async def during(self, seconds: float) -> list[Any]:
        """Every message that comes within so long."""
        before = len(self.seen)
        with trio.move_on_after(seconds):
            await self.rest()
        return self.seen[before:]


def is_reply(message: Any, id: Any) -> bool:
    return isinstance(message, dict) and message.get("id") == id and "method" not in message


def kinds(messages: Sequence[Any]) -> list[str]:
    """What messages are: the kind of an update, a method, `result`, `error: CODE`."""
    return [_kind(message) for message in messages]


def _kind(message: Any) -> str:
    if not isinstance(message, dict):
        return "?"
    if message.get("method") == "session/update":
        return str(message["params"]["update"].get("sessionUpdate"))
    if "method" in message:
        return str(message["method"])
    return f"error: {message['error']['code']}" if "error" in message else "result"


def said(messages: Sequence[Any]) -> list[str]:
    """The texts of all chunks of the agent's messages."""
    return [
        message["params"]["update"]["content"]["text"]
        for message in messages
        if _kind(message) == "agent_message_chunk"
    ]


# --- stdio: a real process


class Process:
    """`mockagent` with pipes on its standard files; also the link of an ACP client."""

    def __init__(self, child: trio.Process, raw: Raw, stderr: Raw) -> None:
        self.child = child
        self.raw = raw
        self.stderr = stderr

    async def post(self, text: bytes) -> None:
        await self.raw.write(text + b"\n")

    async def text(self) -> bytes | None:
        while (line := await self.raw.until(b"\n")) is not None:
            if line.strip():
                return line.rstrip(b"\r\n")
        left = self.raw.take(len(self.raw.held))
        return left or None

    async def leave(self) -> int:
        """Closes stdin, and waits for the end."""
        assert self.child.stdin is not None
        await self.child.stdin.aclose()
        return await self.ended()

    async def ended(self) -> int:
        """The exit status, negative for a signal."""
        return await self.child.wait()

    def signal(self, number: int = signal.SIGTERM) -> None:
        self.child.send_signal(number)


@asynccontextmanager
async def process(command: str, *args: str, files: str | Path) -> AsyncIterator[Process]:
    """Starts `mockagent COMMAND FILE ARGS`; it is killed at the end if it is still there.

    Args:
        files: the path of the scenario.
    """
    read, write = os.pipe2(os.O_DIRECT | os.O_CLOEXEC)  # packet mode: one read for one write
    code = "from mockagent.cli import main; main()"
    child = await trio.lowlevel.open_process(
        [sys.executable, "-c", code, command, str(files), *args],
        stdin=subprocess.PIPE,
        stdout=write,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    os.close(write)
    assert child.stdin is not None
    assert child.stderr is not None
    stdout = trio.lowlevel.FdStream(read)
    raw = Raw(partial(stdout.receive_some, 1 << 20), child.stdin.send_all)
    stderr = Raw(child.stderr.receive_some, child.stdin.send_all)
    try:
        with trio.fail_after(PATIENCE):
            yield Process(child, raw, stderr)
    finally:
        child.kill()
        with trio.CancelScope(shield=True):
            await child.wait()
            for stream in (child.stdin, stdout, child.stderr):
                await stream.aclose()


# --- a server in the test's own loop


class Seen:
    """A tap that keeps the notes."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, Json]] = []
        self.peers: list[tuple[str, Peer | None]] = []
        self.fates: list[tuple[str, Fate]] = []
        self.arrived: list[str] = []
        self.bursts = 0

    def saw(self, message: Message, direction: Direction, fate: Fate) -> None:
        if direction == "out":
            self.fates.append((message.kind, fate))
        else:
            self.arrived.append(message.kind)

    def saw_burst(self, burst: Burst) -> None:
        self.bursts += 1
        self.fates += [(burst.kind, Fate.INTACT)] * len(burst.texts)

    def malformed(self, peer: Peer, data: bytes, why: str) -> None:
        self.notes.append(("malformed", {"why": why}))

    def note(self, event: str, peer: Peer | None, session: str | None, detail: Json) -> None:
        self.peers.append((event, peer))
        self.notes.append((event, {"session": session, **detail}))

    def lost(self, peer: Peer, count: int) -> None:
        self.notes.append(("lost", {"count": count}))

    def close(self) -> None:
        pass

    def of(self, event: str) -> list[Json]:
        return [detail for name, detail in self.notes if name == event]

    @property
    def fired(self) -> list[tuple[str, str]]:
        """What each fault that fired was at, and on what."""
        return [(detail["at"], detail["on"]) for detail in self.of("fault") if detail["what"] == "fired"]

    @property
    def skipped(self) -> list[str]:
        """Why faults that should have fired did not."""
        return [detail["what"] for detail in self.of("fault") if detail["what"] != "fired"]


class Served:
    """A running server."""

    def __init__(self, host: Host, site: Site, port: int, seen: Seen) -> None:
        self.host = host
        self.site = site
        self.port = port
        self.seen = seen
        self.streams: list[trio.SocketStream] = []

    async def connect(self) -> Raw:
        """A plain TCP connection."""
        stream = await trio.open_tcp_stream("127.0.0.1", self.port)
        self.streams.append(stream)
        return Raw(partial(stream.receive_some, 1 << 20), stream.send_all)

    async def websocket(self, path: str = "/acp", **headers: str) -> Socket:
        """A WebSocket; fails unless the handshake succeeds."""
        socket = Socket(await self.connect())
        head = await socket.shake(path, headers)
        assert head.startswith(b"HTTP/1.1 101 "), head
        return socket

    async def client(self, path: str = "/acp") -> Client:
        """An ACP client over a WebSocket."""
        return Client(await self.websocket(path))

    async def aap(self) -> Aap:
        """An AAP client on a connection of its own."""
        return Aap(await self.connect())


@asynccontextmanager
async def serving(*scenarios: str | Path, armed: bool = False, options: Options | None = None) -> AsyncIterator[Served]:
    """A server for scenarios: YAML texts, or paths of files."""
    models = [_model(scenario) for scenario in scenarios]
    seen = Seen()
    host = Host(models, options or Options(), taps=[seen], armed=armed)
    site = Site(host.backstage, Settings(port=0))
    with trio.fail_after(3600):  # seconds of the test's clock, which jumps
        async with trio.open_nursery() as nursery:
            host.backstage.start()
            nursery.start_soon(drive, host.stage)
            port = await nursery.start(site.run)
            served = Served(host, site, port, seen)
            try:
                yield served
            finally:
                for stream in served.streams:
                    stream.socket.close()
                nursery.cancel_scope.cancel()


def _model(scenario: str | Path) -> Any:
    if isinstance(scenario, Path):
        return load(scenario)
    head = "legality: unspecified\n" if scenario.startswith("name:") else "name: test\nlegality: unspecified\n"
    return load_text(head + scenario)


# --- WebSocket


class Frame:
    """One frame (RFC 6455, 5.2)."""

    def __init__(self, opcode: int, fin: bool, payload: bytes) -> None:
        self.opcode = opcode
        self.fin = fin
        self.payload = payload

    @property
    def code(self) -> int | None:
        """Of a close frame."""
        return struct.unpack("!H", self.payload[:2])[0] if self.opcode == 8 and self.payload else None

    def __repr__(self) -> str:
        return f"<{self.opcode:x} {'fin' if self.fin else '...'} {self.payload!r:.60}>"


class Socket:
    """A WebSocket client that sees frames; reading messages, it answers a close, and pings unless told not to."""

    def __init__(self, raw: Raw) -> None:
        self.raw = raw
        self.frames: list[Frame] = []
        self.closed: int | None = None
        self.pongs = True

    async def shake(self, path: str, headers: dict[str, str]) -> bytes:
        """Sends the handshake; returns the head of the answer."""
        fields = {
            "Host": "localhost",
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": base64.b64encode(bytes(16)).decode(),
            **headers,
        }
        lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
        await self.raw.write("\r\n".join(lines).encode())
        return await self.raw.until(b"\r\n\r\n") or b""

    async def frame(self) -> Frame | None:
        """The next frame; None: the connection has ended."""
        head = await self.raw.exactly(2)
        if head is None:
            return None
        assert not head[1] & 0x80, "a server does not mask"
        size: int | None = head[1]
        if size in (126, 127):
            length = await self.raw.exactly(2 if size == 126 else 8)
            assert length is not None
            size = int.from_bytes(length, "big")
        payload = await self.raw.exactly(size or 0)
        assert payload is not None, "a frame is cut off"
        made = Frame(head[0] & 0x0F, bool(head[0] & 0x80), payload)
        self.frames.append(made)
        return made

    async def text(self) -> bytes | None:
        """The next message, whatever its opcode; None at the end, orderly or not."""
        parts = []
        while (frame := await self.frame()) is not None:
            if frame.opcode == 8:
                self.closed = frame.code
                await self.send(8, frame.payload[:2])
                return None
            if frame.opcode == 9 and self.pongs:
                await self.send(10, frame.payload)
            if frame.opcode in (0, 1, 2):
                parts.append(frame.payload)
                if frame.fin:
                    return b"".join(parts)
        return None

    async def post(self, text: bytes) -> None:
        await self.send(1, text)

    async def send(self, opcode: int, payload: bytes) -> None:
        """Sends one frame, masked with zeros."""
        size = len(payload)
        head = bytes([0x80 | opcode])
        head += bytes([0x80 | size]) if size < 126 else bytes([0x80 | 126]) + size.to_bytes(2, "big")
        with suppress(trio.BrokenResourceError):  # reading tells how it ended
            await self.raw.write(head + bytes(4) + payload)


# --- HTTP


class Reply:
    """What came in answer to one request, as a strict client sees it.

    Attributes:
        complete: it ended as its framing said.
    """

    def __init__(self, status: int, headers: dict[str, str], body: bytes, complete: bool, chunks: list[bytes]) -> None:
        self.status = status
        self.headers = headers
        self.body = body
        self.complete = complete
        self.chunks = chunks

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[tuple[str, Any]]:
        """The events of a stream; data that is no JSON stays text."""
        return [(event.name, _data(event.text)) for event in SseParser().feed(self.body) if isinstance(event, SseEvent)]

    @property
    def told(self) -> list[str]:
        """The texts that a stream of deltas says."""
        return [data["delta"] for name, data in self.events if name == "text_delta"]


def _data(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


class Aap:
    """An AAP client over one connection, which is kept as long as HTTP lets it."""

    def __init__(self, raw: Raw, base: str = "/aap") -> None:
        self.raw = raw
        self.base = base
        self._h11 = h11.Connection(h11.CLIENT)

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> None:
        """Sends a request."""
        content = b"" if body is None else json.dumps(body).encode()
        fields = {"Host": "localhost", **headers}
        if body is not None:
            fields |= {"Content-Type": "application/json", "Content-Length": str(len(content))}
        head = h11.Request(method=method, target=self.base + path, headers=list(fields.items()))
        data = (self._h11.send(head) or b"") + (self._h11.send(h11.Data(data=content)) or b"" if content else b"")
        await self.raw.write(data + (self._h11.send(h11.EndOfMessage()) or b""))

    async def reply(self) -> Reply | None:
        """Reads the answer; None: there was none."""
        head: h11.Response | None = None
        chunks: list[bytes] = []
        complete = False
        while not complete:
            try:
                event = self._h11.next_event()
            except h11.RemoteProtocolError:
                break
            if event is h11.NEED_DATA:
                if self.raw.held:
                    self._h11.receive_data(self.raw.take(len(self.raw.held)))
                elif await self.raw.more():
                    continue
                else:
                    try:
                        self._h11.receive_data(b"")
                    except h11.RemoteProtocolError:
                        break
            elif isinstance(event, h11.Response):
                head = event
            elif isinstance(event, h11.Data):
                chunks.append(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                complete = True
            else:
                break
        if head is None:
            return None
        if complete and self._h11.our_state is h11.DONE and self._h11.their_state is h11.DONE:
            self._h11.start_next_cycle()
        headers = {name.decode().lower(): value.decode() for name, value in head.headers}
        return Reply(head.status_code, headers, b"".join(chunks), complete, chunks)

    async def call(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        """A request and its answer."""
        await self.ask(method, path, body, **headers)
        reply = await self.reply()
        assert reply is not None, "no answer"
        return reply

    async def new(self) -> str:
        reply = await self.call("POST", "/sessions", {"agent": {"name": "mock-agent"}})
        assert reply.status == 201, reply.body
        id: str = reply.json["sessionId"]
        return id

    async def begin(self, session: str, text: str = "go", stream: str = "delta") -> None:
        """Sends a turn."""
        body = {"messages": [{"role": "user", "content": text}], "stream": stream}
        await self.ask("POST", f"/sessions/{session}/turns", body)

    async def turn(self, session: str, text: str = "go", stream: str = "delta") -> Reply:
        """A whole turn."""
        await self.begin(session, text, stream)
        reply = await self.reply()
        assert reply is not None, "no answer"
        return reply
