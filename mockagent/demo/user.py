"""The demo's user and workspace: answers everything that an agent may ask of a client, so that nothing waits for ever.

No file is read and no command is run: contents and outputs are made up. What was answered goes to the view.

Source: ACP v1, "Tool Calls" (requesting permission), "File System", "Terminals", "Elicitation".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import trio

from mockagent.demo.client import METHOD_NOT_FOUND, AgentError
from mockagent.demo.lines import brief, items
from mockagent.jsonrpc.messages import Request

MOMENT = 1.2
"""Seconds that a user thinks about a question."""

CAPABILITIES: dict[str, Any] = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "session": {"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}},
    "elicitation": {"form": {}, "url": {}},
}
"""What this client says of itself; everything in it is answered below."""


class Witness(Protocol):
    """Is shown what is asked and answered."""

    def asked(self, params: dict[str, Any]) -> None:
        """The agent asks for permission."""

    def chose(self, params: dict[str, Any], choice: str) -> None:
        """The user has answered."""

    def client_did(self, what: str) -> None:
        """The client did something else for the agent."""


class User:
    """Answers requests.

    Args:
        witness: is shown what happens.
        pause: waits as long as a user would take; the argument is in seconds.
    """

    def __init__(self, witness: Witness, pause: Callable[[float], Awaitable[None]]) -> None:
        self._witness = witness
        self._pause = pause
        self._stopped = trio.Event()
        self._terminals: dict[str, str] = {}

    def stop(self) -> None:
        """The user cancels the turn: open questions are answered with `cancelled`."""
        self._stopped.set()
        self._stopped = trio.Event()

    async def answer(self, request: Request) -> Any:
        """The result for a request of the agent.

        Raises:
            AgentError: the client knows no such method.
        """
        call = _ANSWERS.get(request.method)
        if call is None:
            self._witness.client_did(f"{request.method}: unknown here")
            raise AgentError({"code": METHOD_NOT_FOUND, "message": f"Method not found: {request.method}"})
        return await call(self, request.params if isinstance(request.params, dict) else {})

    async def _permission(self, params: dict[str, Any]) -> Any:
        stopped = self._stopped
        self._witness.asked(params)
        await self._think(stopped)
        options = items(params.get("options"))
        allowing = [option for option in options if str(option.get("kind")).startswith("allow")]
        if stopped.is_set() or not options:
            self._witness.chose(params, "cancelled")
            return {"outcome": {"outcome": "cancelled"}}
        chosen = (allowing or options)[0]
        self._witness.chose(params, brief(chosen.get("name", chosen.get("optionId")), 40))
        return {"outcome": {"outcome": "selected", "optionId": chosen.get("optionId")}}

    async def _think(self, stopped: trio.Event) -> None:
        async def wait() -> None:
            await self._pause(MOMENT)
            nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await stopped.wait()
            nursery.cancel_scope.cancel()

    async def _read(self, params: dict[str, Any]) -> Any:
        name = brief(params.get("path"))
        self._witness.client_did(f"reads {name}")
        lines = [f"# line {number} of {name}" for number in range(1, 21)]
        first = params.get("line") if isinstance(params.get("line"), int) else 1
        limit = params.get("limit") if isinstance(params.get("limit"), int) else len(lines)
        start = max((first or 1) - 1, 0)
        return {"content": "".join(f"{line}\n" for line in lines[start : start + (limit or 0)])}

    async def _write(self, params: dict[str, Any]) -> Any:
        self._witness.client_did(f"writes {brief(params.get('path'))} ({len(str(params.get('content')))} characters)")
        return {}

    async def _terminal(self, params: dict[str, Any]) -> Any:
        id = f"term_{len(self._terminals) + 1}"
        args = params.get("args")
        words = [params.get("command"), *(args if isinstance(args, list) else [])]
        self._terminals[id] = " ".join(brief(word, 60) for word in words)
        self._witness.client_did(f"runs {self._terminals[id]} (not really)")
        return {"terminalId": id}

    async def _output(self, params: dict[str, Any]) -> Any:
        command = self._terminals.get(str(params.get("terminalId")), "")
        return {"output": f"$ {command}\nok\n", "truncated": False, "exitStatus": {"exitCode": 0}}

    async def _wait_for_exit(self, params: dict[str, Any]) -> Any:
        await self._pause(MOMENT / 2)
        return {"exitCode": 0}

    async def _nothing(self, params: dict[str, Any]) -> Any:
        return {}

    async def _elicit(self, params: dict[str, Any]) -> Any:
        self._witness.client_did(f"is asked: {brief(params.get('message'))}")
        await self._pause(MOMENT)
        if params.get("mode") == "url":
            self._witness.client_did(f"opens {brief(params.get('url'))} (not really)")
            return {"action": "accept"}
        content = filled(params.get("requestedSchema"))
        self._witness.client_did(f"answers {brief(content)}")
        return {"action": "accept", "content": content}


def filled(schema: Any) -> dict[str, Any]:
    """A form filled in: the defaults of a schema, or something of the right type."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return {}
    return {name: _value(field) for name, field in properties.items() if isinstance(field, dict)}


def _value(field: dict[str, Any]) -> Any:
    if "default" in field:
        return field["default"]
    choices = _choices(field)
    if field.get("type") == "array":
        inner = field.get("items")
        return _choices(inner)[:1] if isinstance(inner, dict) else []
    if choices:
        return choices[0]
    made = _SAMPLES.get(str(field.get("type")), "demo")
    least = field.get("minimum")
    return max(made, least) if type(made) is int and type(least) is int else made


def _choices(field: dict[str, Any]) -> list[Any]:
    """What a field can be, as `enum`, or as a list of constants with titles."""
    if isinstance(field.get("enum"), list):
        return list(field["enum"])
    return [entry["const"] for key in ("oneOf", "anyOf") for entry in items(field.get(key)) if "const" in entry]


_SAMPLES: dict[str, Any] = {"string": "demo", "integer": 1, "number": 1, "boolean": True}

_ANSWERS: dict[str, Callable[[User, dict[str, Any]], Awaitable[Any]]] = {
    "session/request_permission": User._permission,
    "fs/read_text_file": User._read,
    "fs/write_text_file": User._write,
    "terminal/create": User._terminal,
    "terminal/output": User._output,
    "terminal/wait_for_exit": User._wait_for_exit,
    "terminal/kill": User._nothing,
    "terminal/release": User._nothing,
    "elicitation/create": User._elicit,
}
"""Every request that this client answers."""
