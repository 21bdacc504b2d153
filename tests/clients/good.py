"""A well-behaved ACP client that tries all there is: the yardstick for rules, which must never accuse it.

It answers every request, gates every call, gives every wait an end, and reads whatever the agent sends, sense or not.
Whether it answers permission requests at once, or leaves them open and cancels the turn, is the one thing to choose.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import trio

from mockagent.acp.paths import is_absolute
from tests.clients.speaker import CANCELLED, CWD, Json, Speaker, first_offer, polite

PATIENCE = 30.0
"""Seconds that it waits for anything."""

PAGES = 40
"""Pages of a list that it reads at most."""

TRACE = "00-80e1afed08e019fc1110464cfa66635c-7a085853722dc6d2-01"

WORDS = ("hi", "go", "page", "late", "hang", "weather", "/plan it")
"""What its user says, one turn each."""


class Gone(Exception):
    """The agent has left, or does not answer."""


class Good(Speaker):
    """One connection; see above.

    Args:
        stream: to the agent and from it.
        patient: leaves permission requests open until it cancels the turn.
        servers: names MCP servers.
    """

    def __init__(self, stream: trio.abc.Stream, *, patient: bool = False, servers: bool = True) -> None:
        super().__init__(stream)
        self.patient = patient
        self.servers = servers
        self.cancelled: set[str] = set()
        self.open: list[Json] = []
        self.answers = polite() | {"session/request_permission": self._permit}
        self.agent: Json = {}

    # --- reading, with an end to everything

    async def read(self) -> Any:
        try:
            return await super().read()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return None

    async def write(self, data: bytes) -> None:
        try:
            await super().write(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise Gone from None

    async def reply(self, id: Any) -> Any:
        """The reply to a request; an empty object if none came in time, or one that is no reply."""
        with trio.move_on_after(PATIENCE):
            found = await super().reply(id)
            if found is None:
                raise Gone
            return found
        return {}

    async def result(self, method: str, params: Any = None) -> Json | None:
        """The result of a call; None for an error, or nothing that makes sense."""
        found = (await self.call(method, params)).get("result")
        return found if isinstance(found, dict) else None

    # --- permissions

    def _permit(self, asked: Json) -> Any:
        params = asked.get("params")
        session = params.get("sessionId") if isinstance(params, dict) else None
        if session in self.cancelled or not isinstance(params, dict) or not isinstance(params.get("options"), list):
            return CANCELLED
        if self.patient:
            self.open.append(asked)
            return None
        return first_offer(asked)

    async def cancel(self, session: str) -> None:
        """Stops a turn: tells the agent, and answers what is open."""
        self.cancelled.add(session)
        await self.notify("session/cancel", {"sessionId": session})
        for asked in self.open:
            await self.answer(asked, CANCELLED)
        self.open.clear()

    # --- all there is

    async def live(self) -> None:
        """Does everything once, and leaves."""
        with suppress(Gone):
            await self._live()
        with trio.move_on_after(PATIENCE):
            await self.leave()

    async def _live(self) -> None:
        hello = (await self.greet()).get("result")
        if not isinstance(hello, dict) or hello.get("protocolVersion") != 1:
            return
        self.agent = hello
        await self._look_around()
        made = await self._make()
        if made is None:
            return
        session, state = made
        await self._set(session, state)
        for words in WORDS:
            await self._turn(session, words)
        await self._turn(session, "look at these", *self._attachments())
        if self.can("sessionCapabilities", "close"):
            await self.call("session/close", {"sessionId": session})
        if self.can("sessionCapabilities", "delete"):
            await self.call("session/delete", {"sessionId": session})
        if self.can("auth", "logout"):
            await self.call("logout")

    def can(self, *path: str) -> bool:
        """Whether the agent advertises something."""
        value: Any = self.agent.get("agentCapabilities")
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value is not None and value is not False

    async def _look_around(self) -> None:
        """Lists sessions, and opens one of them in every way there is."""
        if self.can("sessionCapabilities", "list"):
            await self.call("session/list", {"cwd": CWD, "_meta": {"traceparent": TRACE}})
        rows = await self._list() if self.can("sessionCapabilities", "list") else []
        rows = [row for row in rows if isinstance(row["cwd"], str) and is_absolute(row["cwd"])]
        if not rows:
            return
        for method, path in (("session/load", ("loadSession",)), ("session/resume", ("sessionCapabilities", "resume"))):
            if self.can(*path):
                params = {"sessionId": rows[0]["sessionId"], "cwd": rows[0]["cwd"], "mcpServers": []}
                if await self.result(method, params) is not None and self.can("sessionCapabilities", "close"):
                    await self.call("session/close", {"sessionId": rows[0]["sessionId"]})

    async def _list(self) -> list[Json]:
        rows: list[Json] = []
        cursors: set[str] = set()
        cursor: Any = None
        for _ in range(PAGES):
            page = await self.result("session/list", {} if cursor is None else {"cursor": cursor})
            if page is None:
                return rows
            rows += [row for row in page.get("sessions", []) if {"sessionId", "cwd"} <= row.keys()]
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str) or cursor in cursors:
                return rows
            cursors.add(cursor)
        return rows

    async def _make(self) -> tuple[str, Json] | None:
        """A new session; logs in once if it has to."""
        params: Json = {"cwd": CWD, "mcpServers": self._servers() if self.servers else []}
        if self.can("sessionCapabilities", "additionalDirectories"):
            params["additionalDirectories"] = ["/home/dev/lib"]
        reply = await self.call("session/new", params)
        error = reply.get("error")
        if isinstance(error, dict) and error.get("code") == -32000:
            for method in self.agent.get("authMethods", []):
                if method.get("type", "agent") == "agent":
                    await self.call("authenticate", {"methodId": method["id"]})
                    break
            reply = await self.call("session/new", params)
        state = reply.get("result")
        if not isinstance(state, dict) or not isinstance(state.get("sessionId"), str):
            return None
        return state["sessionId"], state

    def _servers(self) -> list[Json]:
        """An MCP server over each transport that the agent takes; nobody is there."""
        local = {"name": "local", "command": "/nowhere/server", "args": [], "env": [{"name": "A", "value": "b"}]}
        remote = [over for over in ("http", "sse") if self.can("mcpCapabilities", over)]
        return [local] + [{"type": over, "name": over, "url": "http://127.0.0.1:9/", "headers": []} for over in remote]

    def _attachments(self) -> list[Json]:
        """Content of every type that the agent takes."""
        note = {"uri": "file:///home/dev/project/a.txt", "text": "a"}
        blocks: list[tuple[str, Json]] = [
            ("image", {"type": "image", "data": "AAEC", "mimeType": "image/png"}),
            ("audio", {"type": "audio", "data": "AAEC", "mimeType": "audio/wav"}),
            ("embeddedContext", {"type": "resource", "resource": note}),
        ]
        link = {"type": "resource_link", "name": "b.txt", "uri": "file:///home/dev/project/b.txt"}
        return [link] + [block for name, block in blocks if self.can("promptCapabilities", name)]

    async def _set(self, session: str, state: Json) -> None:
        """Chooses the last of all that there is to choose from; modes only where no option stands for them."""
        options = state.get("configOptions") or []
        for option in options:
            params = {"sessionId": session, "configId": option["id"]}
            if option.get("type") == "boolean":
                await self.call("session/set_config_option", params | {"type": "boolean", "value": True})
            elif option.get("type") == "select":
                await self.call("session/set_config_option", params | {"value": _last(option["options"])})
        modes = (state.get("modes") or {}).get("availableModes") or []
        if modes and not any(option.get("category") == "mode" for option in options):
            await self.call("session/set_mode", {"sessionId": session, "modeId": modes[-1]["id"]})

    async def _turn(self, session: str, words: str, *more: Json) -> None:
        """One turn; a turn that does not end in time is cancelled, in both ways, and then left alone."""
        self.cancelled.discard(session)
        prompt = [{"type": "text", "text": words}, *more]
        id = await self.ask("session/prompt", {"sessionId": session, "prompt": prompt})
        if await self.reply(id) == {}:
            await self.cancel(session)
            await self.notify("$/cancel_request", {"requestId": id})
            await self.reply(id)


def _last(choices: list[Json]) -> Any:
    last = choices[-1]
    return _last(last["options"]) if "options" in last else last["value"]
