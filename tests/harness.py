"""A client in memory, for tests: what it writes goes to a real `Connection`, what the agent writes can be looked at.

There is no event loop and no time: the stage is moved by hand, and waits pass at once. Every message is judged by the
official schema where that is installed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

from mockagent.acp.connection import Connection
from mockagent.acp.stdio import LineFramer
from mockagent.faults.interface import Faults, Life, NoFaults
from mockagent.message import Burst, Direction, Fate, Message, Peer
from mockagent.scenario.load import load_text
from mockagent.scenario.model import Scenario
from mockagent.script.agent import Agent
from mockagent.script.stage import Stage
from mockagent.watch.tap import Taps
from mockagent.wire.backstage import Backstage
from mockagent.wire.line import Director, Line
from mockagent.wire.outgoing import Outgoing
from mockagent.world.clock import Clock
from mockagent.world.world import World
from tests.official import SCHEMA, Official, official

Json = dict[str, Any]

EVERYTHING: Json = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "session": {"notices": {}, "compaction": {}, "configOptions": {"boolean": {}}},
    "elicitation": {"form": {}, "url": {}},
}
"""Capabilities of a client that can do all there is."""

CWD = "/home/dev/project"


class Notes:
    """A tap that keeps the notes, and what became of each outgoing message."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, Json]] = []
        self.fates: list[tuple[str, Fate]] = []
        self.incoming: list[Message] = []

    def saw(self, message: Message, direction: Direction, fate: Fate) -> None:
        if direction == "out":
            self.fates.append((message.kind, fate))
        else:
            self.incoming.append(message)

    def saw_burst(self, burst: Burst) -> None:
        self.fates += [(burst.kind, Fate.INTACT)] * len(burst.texts)

    def malformed(self, peer: Peer, data: bytes, why: str) -> None:
        self.notes.append(("malformed", {"why": why}))

    def note(self, event: str, peer: Peer | None, session: str | None, detail: Json) -> None:
        self.notes.append((event, {"session": session, **detail}))

    def lost(self, peer: Peer, count: int) -> None:
        self.notes.append(("lost", {"count": count}))

    def close(self) -> None:
        pass

    def of(self, event: str) -> list[Json]:
        """The details of all notes of one kind."""
        return [detail for name, detail in self.notes if name == event]


class Tray(Line):
    """A line whose writer is the test: what was put in stays until it is read."""

    def __init__(self, peer: Peer, director: Director, limit: int) -> None:
        super().__init__(peer, LineFramer(), director)
        self.limit = limit
        self.texts: list[bytes] = []
        self.lives: list[Life] = []

    @property
    def room(self) -> int:
        return max(self.limit - len(self.texts), 0)

    def put(self, message: Message) -> None:
        self._director.taps.saw(message, "out", Fate.INTACT)
        self.texts.append(message.text)

    def put_burst(self, burst: Burst) -> None:
        self._director.taps.saw_burst(burst)
        self.texts += burst.texts

    def put_life(self, act: Life) -> None:
        self.lives.append(act)


class Theatre:
    """A scenario that plays, without clients. Several may come.

    Args:
        scenario: YAML text, or what was made of it.
        faults: in place of none.
        seed: in place of the scenario's.

    Attributes:
        now: the monotonic clock of the machine; moved by `run`.
        said: what was said to the person at the terminal.
    """

    def __init__(
        self, scenario: str | Scenario = "{}", *, faults: Faults | None = None, seed: int | None = None
    ) -> None:
        self.scenario = load_text(scenario) if isinstance(scenario, str) else scenario
        self.now = 0.0
        self.clock = Clock(self.scenario.clock, monotonic=lambda: self.now, wall=lambda: 1_768_467_600 + self.now)
        self.stage = Stage(self.clock)
        self.notes = Notes()
        self.said: list[str] = []
        world = World(self.scenario, self.clock, seed=seed)
        taps = Taps(self.notes)
        self.agent = Agent(
            world,
            self.stage,
            note=lambda event, session, **detail: taps.note(event, None, session, **detail),
            complain=self.said.append,
        )
        self.backstage = Backstage(
            self.stage, [self.agent], faults or NoFaults(), taps, exit=lambda code: None, chance=Random(0)
        )
        self.backstage.complain = self.said.append  # type: ignore[method-assign, assignment]
        self.clients: list[Client] = []

    def client(self, *, capabilities: Json = EVERYTHING, room: int = 1024, judge: bool = True) -> Client:
        """Another client; it has not said anything yet."""
        self.clients.append(Client(self, capabilities, room, judge))
        return self.clients[-1]

    def run(self, until: float = math.inf) -> None:
        """Plays until nothing is left that would happen by itself, or so many seconds have passed in all."""
        while True:
            self.stage.pump()
            if self.stage.fire() or self._read():
                continue
            at = self.stage.deadline()
            if at > until or at == math.inf:
                self.now = until if until < math.inf else self.now
                return
            self.now = max(self.now, at)

    def _read(self) -> bool:
        """Lets clients that are out of room read, once there is nothing else to do."""
        full = [client for client in self.clients if client.reads and not client.tray.room]
        return sum(len(client.read()) for client in full) > 0


class Client:
    """One client; see `Theatre.client`.

    Attributes:
        sent: all that the agent has sent and the client has read.
        answers: what to answer to a request of the agent, by method: the result, or a function of the request that
            gives the result, an `Error`, or None for no answer.
        reads: whether it reads by itself when its agent has no room.
    """

    def __init__(self, theatre: Theatre, capabilities: Json, room: int, judge: bool) -> None:
        self.theatre = theatre
        self.capabilities = capabilities
        self.sent: list[Any] = []
        self.answers: dict[str, Any] = {}
        self.reads = True
        self.methods: dict[Any, str] = {}
        self._judge: Official | None = official() if judge and SCHEMA.exists() else None
        self._ids = 100
        backstage = theatre.backstage
        self.peer = backstage.peer("acp", "stdio")
        self.tray = Tray(self.peer, backstage, room)
        self.out = Outgoing(self.peer, backstage, self.tray)
        backstage.arrive(self.out)
        self.connection = Connection(backstage, theatre.agent, self.peer, self.out)

    # --- writing

    def write(self, text: bytes | Json | list[Any]) -> None:
        """Writes one JSON text."""
        self.connection.receive(text if isinstance(text, bytes) else msgspec.json.encode(text))

    def request(self, method: str, params: Any = None, *, id: Any = msgspec.UNSET) -> Any:
        """Writes a request and returns its id."""
        if id is msgspec.UNSET:
            self._ids += 1
            id = self._ids
        self.methods[id] = method
        self.write({"jsonrpc": "2.0", "id": id, "method": method, "params": {} if params is None else params})
        return id

    def notify(self, method: str, params: Any = None) -> None:
        """Writes a notification."""
        self.write({"jsonrpc": "2.0", "method": method, "params": {} if params is None else params})

    def answer(self, request: Json, result: Any) -> None:
        """Answers a request of the agent; an `Error` answers with an error."""
        body = {"error": result.body} if isinstance(result, Error) else {"result": result}
        self.write({"jsonrpc": "2.0", "id": request["id"], **body})

    # --- reading

    def read(self) -> list[Any]:
        """Takes what has been written, answers requests, and returns the new messages."""
        texts, self.tray.texts = self.tray.texts, []
        new = [_decoded(text) for text in texts]
        self.sent += new
        for message in new:
            self._look_at(message)
        return new

    def _look_at(self, message: Any) -> None:
        if self._judge is not None:
            for one in message if isinstance(message, list) else [message]:
                problems = self._problems(one)
                assert not problems, f"{problems} in {one}"
        if isinstance(message, dict) and "method" in message and "id" in message:
            answer = self.answers.get(message["method"])
            result = answer(message) if callable(answer) else answer
            if result is not None:
                self.answer(message, result)

    def _problems(self, message: Any) -> list[str]:
        assert self._judge is not None
        if "method" in message:
            return self._judge.call_problems(message)
        method = self.methods.get(message["id"], "")
        return self._judge.reply_problems(method, message) if method or "result" in message else []

    def run(self) -> list[Any]:
        """Plays until nothing happens by itself any more, reading all the while; returns the new messages."""
        before = len(self.sent)
        while True:
            self.theatre.run()
            if not self.read():
                return self.sent[before:]

    def call(self, method: str, params: Any = None, *, id: Any = msgspec.UNSET) -> Json:
        """Writes a request, plays, and returns the reply."""
        id = self.request(method, params, id=id)
        self.run()
        [reply] = [message for message in self.sent if is_reply(message, id)]
        return reply

    # --- the usual ways

    def initialize(self, **params: Any) -> Json:
        """The first request; returns its result."""
        reply = self.call("initialize", {"protocolVersion": 1, "clientCapabilities": self.capabilities, **params})
        result: Json = reply["result"]
        return result

    def new(self, cwd: str = CWD, **params: Any) -> str:
        """Makes a session and returns its id; introduces itself first if need be."""
        if self.connection.version is None:
            self.initialize()
        id: str = self.call("session/new", {"cwd": cwd, "mcpServers": [], **params})["result"]["sessionId"]
        return id

    def prompt(self, session: str, text: str = "go", *, run: bool = True) -> Any:
        """Sends a prompt, and plays unless told otherwise; returns the id of the request."""
        id = self.request("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]})
        if run:
            self.run()
        return id

    def reply_to(self, id: Any) -> Any:
        """The reply to a request, None if there is none (yet)."""
        self.read()
        return next((message for message in self.sent if is_reply(message, id)), None)


class Error:
    """An error as an answer."""

    def __init__(self, code: int = -32603, message: str = "no") -> None:
        self.body = {"code": code, "message": message}


def is_reply(message: Any, id: Any) -> bool:
    """Whether a message is the reply to a request with that id (1 and true are two)."""
    return (
        isinstance(message, dict)
        and "method" not in message
        and "id" in message
        and message["id"] == id
        and type(message["id"]) is type(id)
    )


def updates(messages: list[Any]) -> list[Json]:
    """The bodies of all `session/update`s among messages."""
    return [message["params"]["update"] for message in messages if message.get("method") == "session/update"]


def words(messages: list[Any]) -> str:
    """All that the agent has said, in one piece."""
    return "".join(
        body["content"].get("text", "") for body in updates(messages) if body["sessionUpdate"] == "agent_message_chunk"
    )


def stop_reason(messages: list[Any]) -> Any:
    """The stop reason of the only turn that ended among messages."""
    [reason] = [
        message["result"]["stopReason"] for message in messages if "stopReason" in (message.get("result") or {})
    ]
    return reason


def played(scenario: str, text: str = "go", **answers: Any) -> list[Any]:
    """One prompt in a new session: all that came behind it.

    Args:
        scenario: YAML text.
        text: the prompt.
        answers: see `Client.answers`, with the last part of the method for a name (`request_permission`).
    """
    client = Theatre(scenario).client()
    client.answers = {_METHODS.get(name, name): value for name, value in answers.items()}
    session = client.new()
    before = len(client.sent)
    client.prompt(session, text)
    return client.sent[before:]


_METHODS = {
    "permission": "session/request_permission",
    "read": "fs/read_text_file",
    "write": "fs/write_text_file",
    "elicit": "elicitation/create",
    "ask": "_ask",
}


def select(option: str) -> Json:
    """The answer to a permission request that chooses an option."""
    return {"outcome": {"outcome": "selected", "optionId": option}}


CANCELLED: Json = {"outcome": {"outcome": "cancelled"}}

Answer = Callable[[Json], Any]


def _decoded(text: bytes) -> Any:
    """A message; halves of surrogate pairs, which one parser refuses, are for the other."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return json.loads(text)
