"""One scenario file over three transports and two protocols: the same thing happens, in the same order."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.interop.client import PATIENCE, Child
from tests.interop.sdk import Connected, dialled, spawned

Happening = tuple[str, str]

EXPECTED: list[Happening] = [
    ("thought", "The user wants a forecast."),
    ("tool", "look"),
    ("asked", "look"),
    ("result", "18°C"),
    ("text", "It is 18°C in Osaka."),
    ("stop", "end_turn"),
    ("title", "Weather in Osaka"),
]

Start = type[Child]


# --- ACP, through the official Python SDK


async def an_hour_passes(control: str) -> None:
    """Time moves only when it is told to, so that nothing has to be waited for."""
    async with httpx.AsyncClient() as http:
        (await http.post(f"{control}/advance", json={"seconds": 3600})).raise_for_status()


async def acp(mock: Connected, control: str) -> list[Happening]:
    """Plays the turn; the title must not be there when the reply comes, and is there an hour later."""
    session = await mock.new()
    stop = await mock.prompt(session, "how is the weather?")
    assert "session_info_update" not in mock.client.kinds()
    happened = [what for _, kind, update in mock.client.heard for what in neutral(kind, update)]
    await an_hour_passes(control)
    title = (await mock.client.until("session_info_update")).title
    row = next(row for row in (await mock.agent.list_sessions()).sessions if row.session_id == session)
    assert row.title == title
    return [*happened, ("stop", stop), ("title", title)]


def neutral(kind: str, update: Any) -> Iterator[Happening]:
    """What an update of ACP means."""
    if kind == "agent_thought_chunk":
        yield "thought", update.content.text
    elif kind == "agent_message_chunk":
        yield "text", update.content.text
    elif kind == "tool_call":
        yield "tool", update.tool_call_id
    elif kind == "permission":
        yield "asked", update.tool_call_id
    elif kind == "tool_call_update" and update.status == "completed":
        yield "result", update.content[0].content.text if update.content else update.raw_output


def over_stdio(start: Start, command: str, spine: str) -> list[Happening]:
    async def main() -> list[Happening]:
        async with spawned(command, spine, "--control", "127.0.0.1:0") as mock:
            return await acp(mock, mock.control)

    return asyncio.run(main())


def over_websocket(start: Start, command: str, spine: str) -> list[Happening]:
    address = start("serve", spine, "--port", "0").address()

    async def main() -> list[Happening]:
        async with dialled(f"ws://{address}/acp") as mock:
            return await acp(mock, f"http://{address}/_mock")

    return asyncio.run(main())


# --- AAP


class Aap:
    """A client of AAP: one session, and what happened in it."""

    def __init__(self, http: httpx.Client) -> None:
        self.http = http
        self.happened: list[Happening] = []
        agent = http.get("meta").raise_for_status().json()["agents"][0]["name"]
        made = http.post("sessions", json={"agent": {"name": agent, "tools": [{"name": "web_search"}]}})
        self.session = made.raise_for_status().json()["sessionId"]

    def turn(self, mode: str, message: dict[str, Any]) -> str:
        """Sends a turn; returns the stop reason."""
        body = {"stream": mode, "messages": [message]}
        reply = self.http.post(f"sessions/{self.session}/turns", json=body).raise_for_status()
        if mode == "none":
            for message in reply.json()["messages"]:
                self.happened += told(message)
            return str(reply.json()["stopReason"])
        stop = ""
        for event in reply.text.split("\n\n")[:-1]:
            name, data = (line.partition(": ")[2] for line in event.split("\n"))
            self.happened += streamed(name, json.loads(data))
            stop = json.loads(data).get("stopReason", "")
        return stop


def streamed(event: str, data: dict[str, Any]) -> Iterator[Happening]:
    """What an event means."""
    if event in ("thinking_delta", "thinking"):
        yield "thought", data["delta" if event.endswith("delta") else "thinking"]
    elif event in ("text_delta", "text"):
        yield "text", data["delta" if event.endswith("delta") else "text"]
    elif event == "tool_call":
        yield "tool", data["toolCallId"]
    elif event == "tool_result":
        yield "result", words(data["content"])


def told(message: dict[str, Any]) -> Iterator[Happening]:
    """What a message of an answer that is not streamed means."""
    if message["role"] == "tool":
        yield "result", words(message["content"])
        return
    content = message["content"]
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        if block["type"] == "thinking":
            yield "thought", block["thinking"]
        elif block["type"] == "text":
            yield "text", block["text"]
        elif block["type"] == "tool_use":
            yield "tool", block["toolCallId"]


def words(content: Any) -> str:
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


def over_aap(mode: str) -> Callable[[Start, str, str], list[Happening]]:
    def play(start: Start, command: str, spine: str) -> list[Happening]:
        address = start("serve", spine, "--port", "0").address()
        with httpx.Client(base_url=f"http://{address}/aap/", timeout=PATIENCE) as http:
            aap = Aap(http)
            assert aap.turn(mode, {"role": "user", "content": "how is the weather?"}) == "tool_use"
            history = http.get(f"sessions/{aap.session}/history", params={"type": "full"}).json()["history"]["full"]
            call = next(block for block in history[-1]["content"] if block["type"] == "tool_use")
            aap.happened.append(("asked", call["toolCallId"]))
            answer = {"role": "tool_permission", "toolCallId": call["toolCallId"], "granted": True}
            stop = aap.turn(mode, answer)
        title = asyncio.run(title_in_list(address, aap.session))
        return [*aap.happened, ("stop", stop), ("title", title)]

    return play


async def title_in_list(address: str, session: str) -> str:
    """AAP has no titles: what became of the late one is seen over ACP, in the list of the same server."""
    async with dialled(f"ws://{address}/acp") as mock:
        assert (await row_of(mock, session)).title is None
        await an_hour_passes(f"http://{address}/_mock")
        return str((await row_of(mock, session)).title)


async def row_of(mock: Connected, session: str) -> Any:
    return next(row for row in (await mock.agent.list_sessions()).sessions if row.session_id == session)


@pytest.mark.parametrize(
    "play",
    [over_stdio, over_websocket, over_aap("delta"), over_aap("message"), over_aap("none")],
    ids=["ACP over stdio", "ACP over WebSocket", "AAP, delta", "AAP, message", "AAP, none"],
)
def test_one_script_happens_alike_over_every_protocol(
    start: Start, command: str, spine: str, play: Callable[[Start, str, str], list[Happening]]
) -> None:
    assert play(start, command, spine) == EXPECTED
