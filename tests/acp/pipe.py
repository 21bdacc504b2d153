"""A client at the other end of a mock in memory, for what needs a whole host: faults, MCP servers.

Answers requests from a table, and keeps all it has read.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio

from mockagent.scenario.load import load, load_text
from mockagent.testing import MockAgent
from mockagent.testing.memory import MemoryAgent

Json = dict[str, Any]
PATIENCE = 60


class Pipe:
    """One connection.

    Attributes:
        answers: results by method.
        seen: every message that was read.
    """

    def __init__(self, agent: MemoryAgent) -> None:
        self.agent = agent
        self.stream = agent.connect()
        self.answers: dict[str, Any] = {}
        self.seen: list[Any] = []
        self._held = b""
        self._ids = 0

    async def send(self, message: Any) -> None:
        await self.stream.send_all(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def read(self) -> Any:
        """The next message; None at the end."""
        while b"\n" not in self._held:
            data = await self.stream.receive_some()
            if not data:
                return None
            self._held += data
        line, self._held = self._held.split(b"\n", 1)
        message = json.loads(line)
        self.seen.append(message)
        if "method" in message and "id" in message and message["method"] in self.answers:
            await self.send({"id": message["id"], "result": self.answers[message["method"]]})
        return message

    async def ask(self, method: str, params: Any = None) -> int:
        self._ids += 1
        await self.send({"id": self._ids, "method": method, "params": params or {}})
        return self._ids

    async def until_reply(self, id: int) -> Json:
        while True:
            message = await self.read()
            assert message is not None, "the agent has left"
            if "method" not in message and message.get("id") == id:
                reply: Json = message
                return reply

    async def call(self, method: str, params: Any = None) -> Json:
        return await self.until_reply(await self.ask(method, params))

    async def greet(self, **capabilities: Any) -> Json:
        reply = await self.call("initialize", {"protocolVersion": 1, "clientCapabilities": capabilities})
        result: Json = reply["result"]
        return result

    async def new(self, **params: Any) -> str:
        reply = await self.call("session/new", {"cwd": "/home/dev/project", "mcpServers": [], **params})
        id: str = reply["result"]["sessionId"]
        return id

    async def prompt(self, session: str, text: str = "go") -> list[Any]:
        """Plays a turn; returns what was read of it."""
        before = len(self.seen)
        content = [{"type": "text", "text": text}]
        await self.call("session/prompt", {"sessionId": session, "prompt": content})
        return self.seen[before:]


@asynccontextmanager
async def playing(scenario: str) -> AsyncIterator[Pipe]:
    """Plays a scenario, given as YAML or as the path of a file."""
    made = load(scenario) if scenario.endswith(".yaml") else load_text(scenario)
    with trio.fail_after(PATIENCE):
        async with MockAgent(made).in_memory() as agent:
            yield Pipe(agent)
