"""The plainest clients there can be, for tests that need a real one: ACP over the stdio of a child, and in memory."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import trio

Json = dict[str, Any]

INFO = {"name": "plain", "version": "1.0.0"}


def request(id: Any, method: str, params: Json) -> bytes:
    """A request as a line."""
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode() + b"\n"


class StdioClient:
    """A synchronous client: a child and its pipes. Reads only while it waits for something.

    Args:
        command: what to start.
        env: the child's whole environment; none at all unless given.
    """

    def __init__(self, command: Sequence[str], env: Mapping[str, str] | None = None, cwd: str = "/") -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(env or {}), cwd=cwd
        )
        self.heard: list[Json] = []
        self._id = 0

    def __enter__(self) -> StdioClient:
        return self

    def __exit__(self, *exc: object) -> None:
        self.kill()

    def write(self, data: bytes) -> None:
        """Sends bytes as they are."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def read(self) -> Json | None:
        """The next message; None: the agent has closed its side."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            return None
        message: Json = json.loads(line)
        self.heard.append(message)
        return message

    def send(self, method: str, params: Json) -> int:
        """Sends a request; returns its id."""
        self._id += 1
        self.write(request(self._id, method, params))
        return self._id

    def answer(self, id: Any, result: Any) -> None:
        """Answers a request of the agent."""
        self.write(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode() + b"\n")

    def notify(self, method: str, params: Json) -> None:
        """Sends a notification."""
        self.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode() + b"\n")

    def until(self, wanted: str | int) -> Json:
        """Reads up to the answer with an id, or to a message of a method."""
        while (message := self.read()) is not None:
            if ("method" not in message and message.get("id") == wanted) or message.get("method") == wanted:
                return message
        raise AssertionError(f"the agent has gone without {wanted}")

    def update(self, kind: str) -> Json:
        """The last update of a kind that was heard."""
        heard = [message["params"]["update"] for message in self.heard if message.get("method") == "session/update"]
        found: Json = [update for update in heard if update["sessionUpdate"] == kind][-1]
        return found

    def ask(self, method: str, **params: Any) -> Json:
        """A request and its answer."""
        return self.until(self.send(method, params))

    def new(self, cwd: str = "/home/dev/project") -> str:
        """Introduces itself and makes a session; returns its id."""
        self.ask("initialize", protocolVersion=1, clientInfo=INFO)
        return self.session(cwd)

    def session(self, cwd: str = "/home/dev/project") -> str:
        """Makes a session; returns its id."""
        id: str = self.ask("session/new", cwd=cwd, mcpServers=[])["result"]["sessionId"]
        return id

    def prompt(self, session: str, text: str = "Hello") -> Json:
        """A turn, up to its answer."""
        return self.ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])

    def close(self) -> int:
        """Closes its side, and returns the exit status."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(10)

    def kill(self) -> None:
        """Kills the child, if it is still there, and closes all pipes."""
        self.process.kill()
        self.process.wait(10)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()


class MemoryClient:
    """The same over trio streams. Reads only while it waits for something."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.heard: list[Json] = []
        self._id = 0
        self._rest = b""

    async def read(self) -> Json:
        """The next message."""
        while b"\n" not in self._rest:
            data = await self.stream.receive_some()
            if not data:
                raise trio.EndOfChannel
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        message: Json = json.loads(line)
        self.heard.append(message)
        return message

    async def send(self, method: str, params: Json) -> int:
        """Sends a request; returns its id."""
        self._id += 1
        await self.stream.send_all(request(self._id, method, params))
        return self._id

    async def until(self, wanted: str | int) -> Json:
        """Reads up to the answer with an id, or to a message of a method."""
        while True:
            message = await self.read()
            if ("method" not in message and message.get("id") == wanted) or message.get("method") == wanted:
                return message

    async def ask(self, method: str, **params: Any) -> Json:
        """A request and its answer."""
        return await self.until(await self.send(method, params))

    async def new(self, cwd: str = "/home/dev/project") -> str:
        """Introduces itself and makes a session; returns its id."""
        await self.ask("initialize", protocolVersion=1, clientInfo=INFO)
        id: str = (await self.ask("session/new", cwd=cwd, mcpServers=[]))["result"]["sessionId"]
        return id

    async def prompt(self, session: str, text: str = "Hello") -> Json:
        """A turn, up to its answer."""
        return await self.ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])
