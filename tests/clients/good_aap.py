"""A well-behaved AAP client that tries all there is: the yardstick for the rules of AAP.

It asks for what the agents declare and for nothing else, answers every call that waits, and gives every wait an end.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import httpx
import trio

from mockagent.net.sse import SseEvent, SseParser

Json = dict[str, Any]

PATIENCE = 0.1
"""Seconds that it waits for a turn."""

ROUNDS = 3
"""Times that it answers calls in a row."""

WORDS = ("hi", "weather")


class GoodAap:
    """One client.

    Args:
        http: its base is the server's.
    """

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http
        self.tool = {"name": "local_time", "description": "What time it is", "parameters": {"type": "object"}}

    async def live(self) -> None:
        """Does everything once."""
        meta = await self._get("/meta")
        for agent in (meta or {}).get("agents", []):
            await self._play(agent)
        await self._list()

    async def _get(self, path: str, **query: str) -> Any:
        try:
            with trio.move_on_after(PATIENCE):
                reply = await self.http.get(path, params=query)
                return reply.json() if reply.status_code == 200 else None
        except (httpx.HTTPError, ValueError):
            pass
        return None

    async def _list(self) -> None:
        seen: set[str] = set()
        page = await self._get("/sessions")
        while page is not None and isinstance(page.get("next"), str) and page["next"] not in seen and len(seen) < 10:
            seen.add(page["next"])
            page = await self._get("/sessions", after=page["next"])

    async def _play(self, agent: Json) -> None:
        can = agent.get("capabilities", {})
        names = [tool["name"] for tool in agent.get("tools", [])]
        config: Json = {
            "name": agent["name"],
            "tools": [{"name": name, "trust": not at % 2} for at, name in enumerate(names)],
        }
        config["options"] = {
            one["name"]: one["options"][-1] for one in agent.get("options", []) if one["type"] == "select"
        }
        mine = [self.tool] if "tools" in can.get("application", {}) else []
        seeds = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
        session = await self._create({"agent": config, "tools": mine, "messages": seeds})
        if session is None:
            return
        for mode in can.get("stream", {"none": {}}):
            for words in WORDS:
                await self._turn(session, mode, [{"role": "user", "content": words}])
        for kind in can.get("history", {}):
            await self._get(f"/sessions/{session}/history", type=kind)
        shown = await self._get(f"/sessions/{session}")
        options = ((shown or {}).get("agent") or {}).get("options", {})
        kept = {name: value for name, value in options.items() if value != "***"}
        blocks: list[Json] = [{"type": "text", "text": "look"}]
        if "http" in can.get("image", {}):
            blocks.append({"type": "image", "url": "https://example.com/a.png"})
        if "data" in can.get("image", {}):
            blocks.append({"type": "image", "url": "data:image/png;base64,AAEC"})
        await self._turn(session, "none", [{"role": "user", "content": blocks}], agent={"options": kept})
        with suppress(httpx.HTTPError), trio.move_on_after(PATIENCE):
            await self.http.delete(f"/sessions/{session}")

    async def _create(self, body: Json) -> str | None:
        try:
            with trio.move_on_after(PATIENCE):
                reply = await self.http.post("/sessions", json=body)
                found = reply.json().get("sessionId")
                return found if isinstance(found, str) else None
        except (httpx.HTTPError, ValueError):
            pass
        return None

    async def _turn(self, session: str, mode: str, messages: list[Json], **more: Any) -> None:
        for _ in range(ROUNDS):
            calls = await self._ask(session, {"messages": messages, "stream": mode} | more)
            if not calls:
                return
            messages = [self._answer(call) for call in calls]

    def _answer(self, call: Json) -> Json:
        if call["name"] == self.tool["name"]:
            return {"role": "tool", "toolCallId": call["toolCallId"], "content": "noon"}
        return {"role": "tool_permission", "toolCallId": call["toolCallId"], "granted": True}

    async def _ask(self, session: str, body: Json) -> list[Json]:
        """Sends a turn; returns the calls that wait behind it."""
        try:
            with trio.move_on_after(PATIENCE):
                async with self.http.stream("POST", f"/sessions/{session}/turns", json=body) as reply:
                    data = await reply.aread()
                if reply.headers.get("content-type", "").startswith("text/event-stream"):
                    return _open_calls(data)
                return _open_in(json.loads(data))
        except (httpx.HTTPError, ValueError):
            pass
        return []


def _open_calls(data: bytes) -> list[Json]:
    calls: dict[str, Json] = {}
    for event in SseParser().feed(data):
        if not isinstance(event, SseEvent):
            continue
        try:
            told = json.loads(event.data)
        except ValueError:
            continue
        if event.name == "tool_call":
            calls[told["toolCallId"]] = told
        elif event.name == "tool_result":
            calls.pop(told["toolCallId"], None)
        elif event.name == "turn_stop":
            return list(calls.values()) if told.get("stopReason") == "tool_use" else []
    return []


def _open_in(body: Json) -> list[Json]:
    calls: dict[str, Json] = {}
    for said in body.get("messages", []):
        for block in said["content"] if isinstance(said.get("content"), list) else []:
            if block.get("type") == "tool_use":
                calls[block["toolCallId"]] = block
        if said.get("role") == "tool":
            calls.pop(said["toolCallId"], None)
    return list(calls.values()) if body.get("stopReason") == "tool_use" else []
