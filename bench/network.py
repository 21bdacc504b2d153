"""Measures ACP over the network, side by side with bare loops over the libraries that are below it.

    python bench/network.py [websocket] [sse] [many] [--rounds N] [--chunks N] [--connections N]

`websocket` and `sse` time one turn of many chunks, the best of several rounds, in turns, as ratios: seconds mean
nothing on another machine. `many` opens connections, each with a slow turn, counts what arrives, and looks at the
server's memory (Linux). The clients are raw sockets that look for marks, so that they are never the slower end.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import trio
from stdio import best, scenario

HERE = Path(__file__).resolve().parent
MODULES = HERE.parent / "tests" / "interop" / "node_modules"
PYTHON = sys.executable

Json = dict[str, Any]

INITIALIZE: Json = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}
NEW: Json = {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": "/tmp", "mcpServers": []}}
UPDATE = b'"session/update"'
END = b'"stopReason"'
PING = 0x9


def prompt(session: str) -> Json:
    """The request that starts a turn."""
    params = {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}
    return {"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": params}


# --- servers


@contextmanager
def server(argv: list[str]) -> Iterator[tuple[int, int]]:
    """A server that tells its address on stderr; its port and process id."""
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    try:
        told = process.stderr.readline().decode()
        yield int(told.strip().rpartition(":")[2]), process.pid
    finally:
        process.terminate()
        process.wait(60)
        process.stderr.close()


def mockagent(*arguments: str) -> list[str]:
    """How to launch the mock of this environment."""
    command = shutil.which("mockagent", path=str(Path(PYTHON).parent)) or "mockagent"
    return [command, "serve", *arguments, "--port", "0"]


def peer(name: str, chunks: int) -> list[str]:
    """How to launch a bare loop."""
    return [PYTHON, str(HERE / "peers" / name), str(chunks)]


# --- WebSocket, from the client's side


def frame(message: Json) -> bytes:
    """A masked text frame; a mask of zeros leaves the text as it is."""
    data = json.dumps(message).encode()
    head = bytes((0x81, 0x80 | len(data))) if len(data) < 126 else struct.pack("!BBH", 0x81, 0x80 | 126, len(data))
    return head + bytes(4) + data


def handshake(port: int) -> bytes:
    """The upgrade request."""
    key = base64.b64encode(os.urandom(16)).decode()
    return (
        f"GET /acp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n"
    ).encode()


class Reader:
    """Reads a socket and looks for marks."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._rest = b""

    def until(self, mark: bytes) -> bytes:
        """What comes, up to the mark and with it."""
        while mark not in self._rest:
            self._rest += self._more()
        end = self._rest.index(mark) + len(mark)
        found, self._rest = self._rest[:end], self._rest[end:]
        return found

    def count(self, mark: bytes, end: bytes) -> int:
        """How often a mark comes before the end does."""
        found, data = 0, self._rest
        while True:
            found += data.count(mark)
            if end in data:
                return found
            tail = data[-max(len(mark), len(end)) + 1 :]
            found -= tail.count(mark)
            data = tail + self._more()

    def _more(self) -> bytes:
        data = self._sock.recv(1 << 20)
        if not data:
            raise EOFError("the server is gone")
        return data


def websocket(argv: list[str], chunks: int) -> float:
    """Seconds from the prompt to its reply over WebSocket."""
    with server(argv) as (port, _), socket.create_connection(("127.0.0.1", port)) as sock:
        reader = Reader(sock)
        sock.sendall(handshake(port))
        reader.until(b"\r\n\r\n")
        sock.sendall(frame(INITIALIZE))
        reader.until(b'"protocolVersion"')
        sock.sendall(frame(NEW))
        session = reader.until(b'"sessionId":"').decode(errors="replace") and reader.until(b'"').decode()[:-1]
        return timed(lambda: sock.sendall(frame(prompt(session))), reader, chunks)


def timed(send: Callable[[], object], reader: Reader, chunks: int) -> float:
    """Seconds from sending the prompt to the reply, every chunk counted."""
    began = time.perf_counter()
    send()
    count = reader.count(UPDATE, END)
    seconds = time.perf_counter() - began
    if count < chunks:
        raise RuntimeError(f"only {count} of {chunks} chunks came")
    return seconds


# --- HTTP, from the client's side


class Http:
    """A client over Streamable HTTP, on sockets of its own."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._connection = ""
        self._post = socket.create_connection(("127.0.0.1", port))
        self.sockets = [self._post]

    def post(self, message: Json, session: str = "") -> bytes:
        """One POST; returns the head of the answer."""
        body = json.dumps(message).encode()
        head = f"POST /acp HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nContent-Type: application/json\r\n"
        self._post.sendall(self._head(head + f"Content-Length: {len(body)}\r\n", session) + body)
        answer = Reader(self._post).until(b"\r\n\r\n")
        found = re.search(rb"(?i)acp-connection-id: ([^\r]+)", answer)
        if found is not None:
            self._connection = found.group(1).decode()
        return answer

    def get(self, session: str = "") -> Reader:
        """Opens a stream."""
        sock = socket.create_connection(("127.0.0.1", self._port))
        self.sockets.append(sock)
        head = f"GET /acp HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nAccept: text/event-stream\r\n"
        sock.sendall(self._head(head, session))
        reader = Reader(sock)
        reader.until(b"\r\n\r\n")
        return reader

    def _head(self, head: str, session: str) -> bytes:
        if self._connection:
            head += f"Acp-Connection-Id: {self._connection}\r\n"
        if session:
            head += f"Acp-Session-Id: {session}\r\n"
        return head.encode() + b"\r\n"


def sse(argv: list[str], chunks: int) -> float:
    """Seconds from the prompt to its reply over Streamable HTTP."""
    with server(argv) as (port, _):
        client = Http(port)
        try:
            client.post(INITIALIZE)
            main = client.get()
            client.post(NEW)
            main.until(b'"sessionId":"')
            session = main.until(b'"').decode()[:-1]
            stream = client.get(session)
            return timed(lambda: client.post(prompt(session), session), stream, chunks)
        finally:
            for sock in client.sockets:
                sock.close()


# --- many connections


def resident(pid: int) -> int:
    """KiB of memory that a process has."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return int(status.partition("VmRSS:")[2].split()[0])


class Slow:
    """One of many clients over WebSocket: reads its turn, answers pings, and looks at the numbers in its turn."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._held = b""
        self._numbers: list[int] = []
        self.numbers: list[int] = []

    async def open(self, port: int) -> None:
        """Up to a session."""
        await self._stream.send_all(handshake(port))
        while b"\r\n\r\n" not in self._held:
            self._held += await self._more()
        self._held = self._held.partition(b"\r\n\r\n")[2]
        await self._stream.send_all(frame(INITIALIZE))
        await self._until(b'"protocolVersion"')
        await self._stream.send_all(frame(NEW))
        reply = await self._until(b'"sessionId"')
        self._session = json.loads(reply)["result"]["sessionId"]

    async def play(self) -> None:
        """One turn."""
        await self._stream.send_all(frame(prompt(self._session)))
        await self._until(END)
        self.numbers, self._numbers = self._numbers, []

    async def _until(self, mark: bytes) -> bytes:
        """Reads messages up to one that holds the mark."""
        while mark not in (text := await self._message()):
            if (number := re.search(rb'"text":"n(\d+)', text)) is not None:
                self._numbers.append(int(number.group(1)))
        return text

    async def _message(self) -> bytes:
        while True:
            opcode, payload = await self._frame()
            if opcode == PING:
                await self._stream.send_all(bytes((0x8A, 0x80 | len(payload))) + bytes(4) + payload)
            else:
                return payload

    async def _frame(self) -> tuple[int, bytes]:
        while len(self._held) < 4:  # the shortest message is longer; a ping has four bytes of payload
            self._held += await self._more()
        if self._held[1] == 126:
            head, size = 4, int.from_bytes(self._held[2:4], "big")
        else:
            head, size = 2, self._held[1]
        while len(self._held) < head + size:
            self._held += await self._more()
        opcode, payload = self._held[0] & 0x0F, self._held[head : head + size]
        self._held = self._held[head + size :]
        return opcode, payload

    async def _more(self) -> bytes:
        data = await self._stream.receive_some(1 << 16)
        if not data:
            raise EOFError("the server is gone")
        return bytes(data)


async def many(argv: list[str], connections: int, chunks: int) -> None:
    """Opens connections, plays a slow turn on each, and prints what they cost."""
    with server(argv) as (port, pid):
        empty = resident(pid)
        clients = []
        began = time.perf_counter()
        for _ in range(connections):
            client = Slow(await trio.open_tcp_stream("127.0.0.1", port))
            await client.open(port)
            clients.append(client)
        opened = time.perf_counter() - began
        idle = resident(pid)
        with trio.fail_after(300):
            began = time.perf_counter()
            async with trio.open_nursery() as nursery:
                for client in clients:
                    nursery.start_soon(client.play)
            played = time.perf_counter() - began
        busy = resident(pid)
    wrong = sum(client.numbers != list(range(chunks)) for client in clients)
    print(f"\n{connections:,} connections over WebSocket, each with a session and a turn of {chunks} chunks")
    print(f"  opened in {opened:.1f} s, all turns played in {played:.1f} s")
    print(
        f"  memory without any: {empty / 1024:.0f} MiB; for each that is idle: {(idle - empty) / connections:.1f} KiB;"
    )
    print(f"  for each after its turn: {(busy - empty) / connections:.1f} KiB")
    print(f"  turns with a chunk lost or out of order: {wrong}")
    if wrong:
        raise SystemExit(1)


# --- running


def show(title: str, chunks: int, times: dict[str, float], base: str) -> None:
    """Prints a table: messages a second, and how many times the base's speed that is."""
    print(f"\n{title}")
    width = max(map(len, times))
    for name, seconds in times.items():
        print(f"  {name:<{width}}  {chunks / seconds:12,.0f} /s   {times[base] / seconds:6.2f}")


def drip(folder: str, chunks: int) -> str:
    """A scenario file whose only turn says numbered words, ten a second."""
    path = Path(folder) / "drip.yaml"
    words = " ".join(f"n{number}" for number in range(chunks))
    text = "pace: {chunk: word, rate: 10/s, jitter: 0.5}\nsessions: {auto_title: null}\nturns:\n"
    path.write_text(f"{text}  - steps: [{{say: {words}}}]\n")
    return str(path)


def measure_websocket(rounds: int, chunks: int, file: str) -> None:
    """The table for WebSocket."""
    loop = "bare trio-websocket loop"
    argvs = {
        loop: peer("ws_trio.py", chunks),
        "mockagent": mockagent(file),
        "`websockets` package": peer("ws_websockets.py", chunks),
    }
    node = shutil.which("node")
    if node and MODULES.is_dir():
        argvs["`ws` in Node"] = [node, str(HERE / "peers" / "ws_node.mjs"), str(chunks), str(MODULES)]
    cases = {name: lambda argv=argv: websocket(argv, chunks) for name, argv in argvs.items()}  # type: ignore[misc]
    title = f"A turn of {chunks:,} chunks over WebSocket (times the speed of the bare loop)"
    show(title, chunks, best(rounds, cases), loop)


def measure_sse(rounds: int, chunks: int, file: str) -> None:
    """The table for server-sent events."""
    loop = "bare h11 loop, an event a write"
    cases = {
        loop: lambda: sse(peer("sse_h11.py", chunks), chunks),
        "mockagent": lambda: sse(mockagent(file), chunks),
    }
    title = f"A turn of {chunks:,} chunks over Streamable HTTP (times the speed of the bare loop)"
    show(title, chunks, best(rounds, cases), loop)


def main() -> None:
    """Runs what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", choices=["websocket", "sse", "many", []], default=[])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--chunks", type=int, default=20_000)
    parser.add_argument("--connections", type=int, default=1_000)
    given = parser.parse_args()
    wanted = given.what or ["websocket", "sse", "many"]
    with tempfile.TemporaryDirectory() as folder:
        file = scenario(folder, given.chunks)
        if "websocket" in wanted:
            measure_websocket(given.rounds, given.chunks, file)
        if "sse" in wanted:
            measure_sse(given.rounds, given.chunks, file)
        if "many" in wanted:
            trio.run(many, mockagent(drip(folder, 50)), given.connections, 50)


if __name__ == "__main__":
    main()
