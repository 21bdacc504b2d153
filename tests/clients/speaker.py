"""What all clients here are made of: one that speaks ACP over a pipe and does right, unless it is told to do wrong.

It knows the protocol and nothing of the mock.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import trio

Json = dict[str, Any]
CWD = "/home/dev/project"
INFO = {"name": "tiny", "version": "1.0.0"}

ABLE: Json = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "session": {"notices": {}, "compaction": {}, "configOptions": {"boolean": {}}},
    "elicitation": {"form": {}, "url": {}},
}

NOT_FOUND: Json = {"error": {"code": -32601, "message": "Method not found"}}
INVALID: Json = {"error": {"code": -32602, "message": "Invalid params"}}
CANCELLED: Json = {"result": {"outcome": {"outcome": "cancelled"}}}

Body = Json | list[Json] | None
"""An answer without its envelope; several; or none yet."""


def chosen(option: str) -> Json:
    """The answer that chooses an option."""
    return {"result": {"outcome": {"outcome": "selected", "optionId": option}}}


def first_offer(asked: Json) -> Json:
    """Chooses the first option that was offered, cancels if there is none."""
    options = asked["params"]["options"]
    return chosen(options[0]["optionId"]) if options else CANCELLED


def filled(asked: Json) -> Json:
    """Accepts what is asked, with something for each field of a form."""
    schema = asked["params"].get("requestedSchema")
    if schema is None:
        return {"result": {"action": "accept"}}
    content = {name: _example(field) for name, field in schema.get("properties", {}).items()}
    return {"result": {"action": "accept", "content": content}}


def _example(field: Json) -> Any:
    if "enum" in field:
        return field["enum"][0]
    if "oneOf" in field:
        return field["oneOf"][0]["const"]
    if field.get("type") == "array":
        return []
    return {"string": "text", "number": 1.5, "integer": 1, "boolean": True}[field.get("type", "string")]


class Terminals:
    """A machine on which every program says one line and ends well."""

    def __init__(self) -> None:
        self.made = 0
        self.limits: dict[str, int | None] = {}

    def create(self, asked: Json) -> Json:
        """Starts one."""
        self.made += 1
        id = f"term_{self.made}"
        self.limits[id] = asked["params"].get("outputByteLimit")
        return {"result": {"terminalId": id}}

    def output(self, asked: Json) -> Json:
        """What it has said, cut from the left."""
        limit = self.limits.get(asked["params"]["terminalId"])
        said = "all is well\n"
        kept = said if limit is None else said[max(len(said) - limit, 0) :]
        return {"result": {"output": kept, "truncated": kept != said, "exitStatus": {"exitCode": 0}}}


def polite() -> dict[str, Any]:
    """Right answers to all that an agent may ask a client."""
    terminals = Terminals()
    return {
        "session/request_permission": first_offer,
        "fs/read_text_file": lambda asked: {"result": {"content": _lines(asked["params"])}},
        "fs/write_text_file": {"result": {}},
        "terminal/create": terminals.create,
        "terminal/output": terminals.output,
        "terminal/wait_for_exit": {"result": {"exitCode": 0, "signal": None}},
        "terminal/kill": {"result": {}},
        "terminal/release": {"result": {}},
        "elicitation/create": filled,
    }


def _lines(params: Json) -> str:
    lines = ["one\n", "two\n", "three\n"]
    first = max((params.get("line") or 1) - 1, 0)
    limit = params.get("limit")
    return "".join(lines[first:] if limit is None else lines[first : first + limit])


class Speaker:
    """One connection.

    Args:
        stream: to the agent and from it.
        able: the capabilities that it advertises.

    Attributes:
        seen: all that was read.
        answers: by method: a body, or what makes one from the request; other methods are not found.
    """

    def __init__(self, stream: trio.abc.Stream, able: Json | None = None) -> None:
        self.stream = stream
        self.able = ABLE if able is None else able
        self.seen: list[Any] = []
        self.answers: dict[str, Body | Callable[[Json], Body]] = polite()
        self._held = b""
        self._ids = 0

    # --- writing

    async def write(self, data: bytes) -> None:
        """Sends bytes as they are."""
        await self.stream.send_all(data)

    async def send(self, message: Json) -> None:
        """Sends a message."""
        await self.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def ask(self, method: str, params: Any = None, **more: Any) -> int:
        """Sends a request; returns its id."""
        self._ids += 1
        await self.send({"id": self._ids, "method": method, "params": {} if params is None else params, **more})
        return self._ids

    async def notify(self, method: str, params: Any = None) -> None:
        """Sends a notification."""
        await self.send({"method": method, "params": {} if params is None else params})

    async def answer(self, asked: Json, body: Body) -> None:
        """Answers a request of the agent."""
        for one in body if isinstance(body, list) else [] if body is None else [body]:
            await self.send({"id": asked["id"], **one})

    # --- reading

    async def read(self) -> Any:
        """The next message, answered if it is a request; None at the end."""
        while b"\n" not in self._held:
            data = await self.stream.receive_some()
            if not data:
                return None
            self._held += data
        line, self._held = self._held.split(b"\n", 1)
        try:
            message = json.loads(line)
        except ValueError:  # not for a client to judge
            return {}
        self.seen.append(message)
        if isinstance(message, dict) and "method" in message and "id" in message:
            answer = self.answers.get(message["method"], NOT_FOUND)
            await self.answer(message, answer(message) if callable(answer) else answer)
        return message

    async def until(self, ready: Callable[[Any], bool]) -> Any:
        """Reads up to a message of a kind; None: it did not come."""
        while (message := await self.read()) is not None:
            if ready(message):
                return message
        return None

    async def reply(self, id: Any) -> Any:
        """Reads up to the reply to a request."""
        return await self.until(
            lambda one: isinstance(one, dict) and "method" not in one and "id" in one and one["id"] == id
        )

    async def call(self, method: str, params: Any = None) -> Any:
        """A request and its reply."""
        return await self.reply(await self.ask(method, params))

    async def asked(self, method: str) -> Any:
        """Reads up to a request of the agent."""
        return await self.until(lambda one: isinstance(one, dict) and one.get("method") == method)

    # --- the usual ways

    async def greet(self, **params: Any) -> Any:
        """Introduces itself."""
        usual = {"protocolVersion": 1, "clientCapabilities": self.able, "clientInfo": INFO}
        return await self.call("initialize", usual | params)

    async def new(self, **params: Any) -> str:
        """Makes a session."""
        reply = await self.call("session/new", {"cwd": CWD, "mcpServers": [], **params})
        id: str = reply["result"]["sessionId"]
        return id

    async def begin(self) -> str:
        """Introduces itself and makes a session."""
        await self.greet()
        return await self.new()

    async def say(self, session: str, text: str = "go") -> int:
        """Sends a prompt; returns the id of the request."""
        return await self.ask("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]})

    async def prompt(self, session: str, text: str = "go") -> Any:
        """Plays a turn."""
        return await self.reply(await self.say(session, text))

    async def leave(self) -> None:
        """Says the last word, and reads what is still to come."""
        if isinstance(self.stream, trio.StapledStream):
            await self.stream.send_stream.aclose()
        while await self.read() is not None:
            pass
