"""One scenario, three transports: what leaves is the same, message for message, over stdio, WebSocket and HTTP.

Time is frozen and waits take none. Over HTTP the connection and each session have a stream of their own; each of them
has to be what is left of the one sequence when the others are taken out.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from mockagent.acp.stdio import serve_stdio
from mockagent.scenario import library, model
from tests.network import CWD, Http, Served, Talker, said, serving

NOW = 1_768_467_600_000_000
ENDS = {"disconnect", "exit", "stall"}
"""Effects and steps that end or stop a channel: what is lost with it is not the same for all."""
SHORT, LONG = 0.002, 0.1
"""Seconds without anything to do after which nothing is under way between two sockets of one machine."""
ON_THE_WIRE = {"bytes", "newline", "split", "truncate", "rate", "binary", "comment", "no_blank", "event_name"}
"""Effects after which not every client can read on."""


class Lines(Talker):
    """A client over stdio, with pipes in memory."""

    def __init__(self, nursery: trio.Nursery, send: trio.abc.SendStream) -> None:
        super().__init__(nursery)
        self._send = send

    async def send(self, message: Any, session: str | None = None) -> None:
        await self._send.send_all(json.dumps(message).encode() + b"\n")

    async def read(self, receive: trio.abc.ReceiveStream) -> None:
        """Takes what comes."""
        held = b""
        async for data in receive:
            *lines, held = (held + data).split(b"\n")
            for line in lines:
                self.took(json.loads(line))


@asynccontextmanager
async def over_stdio(mock: Served) -> AsyncIterator[Talker]:
    """The client that the others are compared with."""
    to_agent, from_client = trio.testing.memory_stream_one_way_pair()
    to_client, from_agent = trio.testing.memory_stream_one_way_pair()
    client = Lines(mock.nursery, to_agent)
    mock.nursery.start_soon(client.read, from_agent)
    mock.nursery.start_soon(serve_stdio, mock.host.backstage, mock.host.agents[0], from_client, to_client)
    yield client


Connect = Callable[[Served], AbstractAsyncContextManager[Talker]]

TRANSPORTS: dict[str, Connect] = {"ws": lambda mock: mock.ws(), "http": lambda mock: mock.http()}


def frozen(name: str) -> model.Scenario:
    """A bundled scenario with a clock that stands still."""
    scenario = library.open_bundled(name)
    return msgspec.structs.replace(scenario, clock=model.ClockRules(now=NOW, speed=0))


def prompts(scenario: model.Scenario) -> list[str]:
    """Prompts that reach the turns of a scenario, as far as their conditions say how."""
    found = []
    for turn in scenario.turns:
        when = turn.when
        if when is not None and when.command is not None:
            found.append(f"/{when.command} now")
        elif when is not None and isinstance(when.prompt, str) and not when.prompt.startswith("/"):
            found.append(when.prompt.replace("*", "").replace("?", "x") or "go")
    return [*found[:6], "go", "and on"]


async def talk(client: Talker, mock: Served, scenario: model.Scenario, pause: float) -> list[Any]:
    """The same conversation, whatever carries it; returns what was read. See `settled` for the pause."""
    client.answers |= {
        "fs/read_text_file": {"content": "one\ntwo\n"},
        "fs/write_text_file": {},
        "elicitation/create": {"action": "decline"},
        "terminal/create": {"terminalId": "term_1"},
        "terminal/output": {"output": "x", "truncated": False, "exitStatus": {"exitCode": 0}},
    }
    await greeted(client, pause)
    if scenario.agent.auth.required:
        await client.ask("authenticate", {"methodId": scenario.agent.auth.methods[0]["id"]})
        await settled(pause)
    session = await made(client, pause)
    await client.ask("session/list", {})
    await settled(pause)
    if session is None:
        return client.seen
    for text in prompts(scenario):
        assert session is not None
        await client.ask("session/prompt", said(session, text))
        await settled(pause)
        if mock.host.agents[0].busy:  # a turn that waits for that
            await client.send({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}, session)
            await settled(pause)
    return client.seen


async def greeted(client: Talker, pause: float) -> None:
    """Introduces itself, and once more where the first time fails."""
    able = {
        "fs": {"readTextFile": True, "writeTextFile": True},
        "terminal": True,
        "session": {"notices": {}, "compaction": {}, "configOptions": {"boolean": {}}},
        "elicitation": {"form": {}, "url": {}},
    }
    for _ in range(2):
        await client.ask("initialize", {"protocolVersion": 1, "clientCapabilities": able})
        await settled(pause)
        if any("result" in one for one in client.seen):
            return


async def made(client: Talker, pause: float) -> str | None:
    """A new session, if the agent gives one out within three requests; over HTTP the streams of all that it made."""
    for _ in range(3):
        await client.ask("session/new", {"cwd": CWD, "mcpServers": []})
        await settled(pause)
        found = [one["result"]["sessionId"] for one in client.seen if "sessionId" in (one.get("result") or {})]
        if isinstance(client, Http):
            for id in set(found) - set(client.streams):
                await client.open(id)
        await settled(pause)
        if found:
            return str(found[0])
    return None


async def settled(pause: float) -> None:
    """Returns when nothing plays and nothing is under way: no task has had anything to do for so many seconds."""
    await trio.testing.wait_all_tasks_blocked(pause)


def unfit(scenario: model.Scenario) -> str | None:
    """Why a scenario cannot be compared."""
    effects = {name for fault in scenario.faults for name in fault.effects}
    text = f"{scenario.turns}{scenario.schedule}"
    verbs = {verb for verb in ENDS if f"verb='{verb}'" in text}
    if found := (effects & ENDS) | verbs:
        return f"it ends or stops its channel: {', '.join(sorted(found))}"
    if found := effects & ON_THE_WIRE:
        return f"not every client reads on behind {', '.join(sorted(found))}"
    if "verb='send'" in text:
        return "it sends what is no message"
    if any(when is not None and when.transport is not None for when in [fault.when for fault in scenario.faults]):
        return "it plays otherwise on each transport"
    return None


async def played(scenario: model.Scenario, connect: Connect, pause: float) -> tuple[list[Any], Talker]:
    async with serving(scenario, speed=None) as mock, connect(mock) as client:
        return await talk(client, mock, scenario, pause), client


@pytest.mark.parametrize("name", library.names())
async def test_what_leaves_is_the_same_over_every_transport(name: str) -> None:
    scenario = frozen(name)
    if (why := unfit(scenario)) is not None:
        pytest.skip(why)
    try:
        await compare(scenario, pause=SHORT)
    except AssertionError:  # on a busy machine something may have been under way all the same
        await compare(scenario, pause=LONG)


async def compare(scenario: model.Scenario, pause: float) -> None:
    lines, _ = await played(scenario, over_stdio, pause)
    frames, _ = await played(scenario, TRANSPORTS["ws"], pause)
    assert frames == lines
    events, client = await played(scenario, TRANSPORTS["http"], pause)
    assert isinstance(client, Http)
    assert sorted(map(str, events)) == sorted(map(str, lines))
    for session, seen in client.streams.items():
        rest = [message for message in lines if message in seen]
        assert seen == rest, f"the stream of {session or 'the connection'}"
