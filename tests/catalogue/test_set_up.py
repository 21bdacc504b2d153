"""Scenarios about the way up to the first prompt, each shown to happen on the wire."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from tests.catalogue.judged import Catalogue, Played, spawned, updates
from tests.catalogue.same import same_over_stdio
from tests.faults.wire import CWD, Client, kinds, said
from tests.transcript import Json

SEVERAL = {"no-images", "other-protocol-version"}
"""Scenarios that are shown to several clients, or in bulk."""

SET_UP = Catalogue("set-up")

DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


async def introduced(played: Played) -> Client:
    client = await played.client()
    await client.initialize()
    return client


async def outcomes(client: Client, session: str) -> list[str]:
    """How the calls end that need a login."""
    return kinds(
        [
            await client.call("session/new", cwd=CWD, mcpServers=[]),
            await client.call("session/load", sessionId=session, cwd=CWD, mcpServers=[]),
            (await client.turn(session))[-1],
            await client.call("session/list"),
        ]
    )


def chosen(options: list[Json]) -> dict[str, tuple[str, list[str]]]:
    """Value and choices of each option."""
    return {
        option["id"]: (option["currentValue"], [choice["value"] for choice in option["options"]]) for option in options
    }


# --- slow, and never


@SET_UP.shows("slow-start")
async def _(played: Played) -> None:
    start = trio.current_time()
    client = await introduced(played)
    assert trio.current_time() - start >= 0.3
    assert said(await client.turn(await client.new())) == ["You said: go"]


@SET_UP.shows("slow-initialize")
async def _(played: Played) -> None:
    start = trio.current_time()
    client = await introduced(played)
    assert trio.current_time() - start == pytest.approx(20)
    assert kinds(await client.turn(await client.new()))[-1] == "result"


@SET_UP.shows("authenticate-hangs")
async def _(played: Played) -> None:
    client = await introduced(played)
    await client.request("authenticate", methodId="login")
    assert await client.during(3000) == []
    assert (await client.call("session/new", cwd=CWD, mcpServers=[]))["error"]["code"] == -32000


# --- logging in


@SET_UP.shows("auth-required")
async def _(played: Played) -> None:
    client = await played.client()
    offered = (await client.initialize())["result"]["authMethods"]
    assert [method["id"] for method in offered] == ["login"]
    assert await outcomes(client, "sess_mine") == ["error: -32000"] * 4
    assert (await client.call("authenticate", methodId="login"))["result"] == {}
    assert await outcomes(client, "sess_mine") == ["result"] * 4
    assert (await client.call("logout"))["result"] == {}
    assert await outcomes(client, "sess_mine") == ["error: -32000"] * 4


@SET_UP.shows("auth-never-sticks", breaks="what needs a login works after one")
async def _(played: Played) -> None:
    client = await introduced(played)
    for _ in range(3):
        assert (await client.call("authenticate", methodId="login"))["result"] == {}
        assert (await client.call("session/new", cwd=CWD, mcpServers=[]))["error"]["code"] == -32000


@SET_UP.shows("login-expires")
async def _(played: Played) -> None:
    client = await introduced(played)
    await client.call("authenticate", methodId="login")
    session = await client.new()
    ends = [kinds(await client.turn(session))[-1] for _ in range(2)]
    assert ends == ["result", "error: -32000"]
    assert (await client.call("authenticate", methodId="login"))["result"] == {}
    assert said(await client.turn(session)) == ["You said: go"]


@SET_UP.shows("unknown-auth-method")
async def _(played: Played) -> None:
    client = await played.client()
    methods = (await client.initialize())["result"]["authMethods"]
    assert [(method["id"], method.get("type")) for method in methods] == [("passkey", "passkey"), ("login", None)]
    assert (await client.call("authenticate", methodId="passkey"))["error"]["code"] == -32602
    assert (await client.call("authenticate", methodId="login"))["result"] == {}
    assert said(await client.turn(await client.new())) == ["You said: go"]


# --- versions and capabilities


@SET_UP.shows("other-protocol-version")
async def _(played: Played) -> None:
    versions = [(await (await played.client()).initialize())["result"]["protocolVersion"] for _ in range(5)]
    assert versions == [2, 0, 99, "1", "1"]


@SET_UP.shows("bare-initialize")
async def _(played: Played) -> None:
    client = await played.client()
    assert (await client.initialize())["result"] == {"protocolVersion": 1}
    assert (await client.call("session/list"))["error"]["code"] == -32601
    assert said(await client.turn(await client.new())) == ["You said: go"]


@SET_UP.shows("initialize-fails")
async def _(played: Played) -> None:
    client = await played.client()
    error = (await client.initialize())["error"]
    assert (error["code"], error["data"]) == (-32603, {"details": "The model is still loading"})
    assert (await client.initialize())["result"]["protocolVersion"] == 1
    assert said(await client.turn(await client.new())) == ["You said: go"]


@SET_UP.shows("no-images")
async def _(played: Played) -> None:
    client = await played.client()
    able = (await client.initialize())["result"]["agentCapabilities"]["promptCapabilities"]
    assert able == {"image": False, "audio": False, "embeddedContext": False}
    session = await client.new()
    blocks: list[Json] = [
        {"type": "image", "mimeType": "image/png", "data": DOT},
        {"type": "audio", "mimeType": "audio/wav", "data": "UklGRg=="},
        {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "a"}},
    ]
    for block in blocks:
        refused = await client.call("session/prompt", sessionId=session, prompt=[block])
        assert refused["error"]["code"] == -32602
    assert said(await client.turn(session)) == ["You said: go"]
    aap = await played.served.aap()
    [agent] = (await aap.call("GET", "/meta")).json["agents"]
    assert not agent["capabilities"].get("image")


# --- options and commands


@SET_UP.shows("options-cascade")
async def _(played: Played) -> None:
    client = await introduced(played)
    made = (await client.call("session/new", cwd=CWD, mcpServers=[]))["result"]
    assert chosen(made["configOptions"]) == {
        "model": ("smart", ["smart", "fast"]),
        "effort": ("high", ["high", "low", "none"]),
        "style": ("plain", ["plain", "rich"]),
    }

    async def choose(model: str) -> dict[str, tuple[str, list[str]]]:
        params = {"sessionId": made["sessionId"], "configId": "model", "value": model}
        return chosen((await client.call("session/set_config_option", **params))["result"]["configOptions"])

    assert await choose("fast") == {"model": ("fast", ["smart", "fast"]), "effort": ("low", ["low", "none"])}
    assert (await choose("smart"))["style"] == ("plain", ["plain", "rich"])


@SET_UP.shows("options-unsolicited")
async def _(played: Played) -> None:
    client = await introduced(played)
    session = await client.new()
    [late] = updates(await client.during(10), "config_option_update")
    assert chosen(late["configOptions"]) == {"model": ("fast", ["smart", "fast", "tiny"])}
    messages = await client.turn(session)
    assert kinds(messages)[:2] == ["config_option_update", "agent_message_chunk"]
    [changed] = updates(messages, "config_option_update")
    assert chosen(changed["configOptions"])["model"][0] == "tiny"


@SET_UP.shows("commands-late")
async def _(played: Played) -> None:
    client = await introduced(played)
    session = await client.new()
    lists = updates(await client.during(10), "available_commands_update")
    names = [[command["name"] for command in one["availableCommands"]] for one in lists]
    assert names == [[], ["plan", "test"], ["review"]]
    assert said(await client.turn(session)) == ["You said: go"]


@pytest.mark.parametrize("name", SET_UP.checks)
async def test_a_set_up_goes_as_its_scenario_says(autojump_clock: Any, name: str) -> None:
    await SET_UP.play(name)


@pytest.mark.parametrize("name", sorted(set(SET_UP.checks) - SEVERAL))
async def test_a_set_up_is_the_same_over_stdio(autojump_clock: Any, name: str) -> None:
    await same_over_stdio(SET_UP, name)


async def test_a_slow_start_is_told_on_stderr_before_anything_is_read() -> None:
    start = trio.current_time()
    async with spawned("set-up/slow-start") as (child, client):
        assert await child.stderr.until(b"loading plugins...\n") is not None
        assert "result" in await client.initialize()
        assert trio.current_time() - start >= 0.3


async def test_exits_at_start_says_why_and_leaves_without_a_word() -> None:
    async with spawned("set-up/exits-at-start", rule="an agent stays until its client leaves") as (child, client):
        assert await client.next() is None
        assert await child.ended() == 1
        assert b"no licence found" in await child.stderr.rest()


def test_every_scenario_of_the_set_up_is_shown() -> None:
    assert set(SET_UP.checks) | {"exits-at-start"} == SET_UP.bundled
