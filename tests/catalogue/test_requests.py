"""Scenarios about requests to the client, each shown to happen on the wire."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.catalogue.judged import Catalogue, Played, asked
from tests.faults.wire import CWD, Client, kinds, said

REQUESTS = Catalogue("requests")
Json = dict[str, Any]
UNKNOWN: Json = {"error": {"code": -32601, "message": "Method not found"}}


async def _answering(client: Client, id: int, answer: Callable[[Json], Json]) -> list[Any]:
    """Answers each request until the reply to the prompt is there: all that came."""
    before = len(client.seen)
    while True:
        message = await client.until(lambda message: "id" in message)
        if "method" not in message:
            assert message["id"] == id
            return client.seen[before:]
        await client.send({"jsonrpc": "2.0", "id": message["id"], **answer(message)})


@REQUESTS.shows("unknown-request")
async def _(played: Played) -> None:
    client, _, id = await played.start()
    messages = await _answering(client, id, lambda message: UNKNOWN)
    assert [kind for kind in kinds(messages) if "/" in kind] == [
        "_acme/heartbeat", "session/telepathy", "_acme/weather", "session/read_mind",
    ]  # fmt: skip
    assert said(messages) == ["The extension is not known. ", "The method is not known."]
    assert played.kept


@REQUESTS.shows("unknown-notification")
async def _(played: Played) -> None:
    client = await played.client()
    messages = await client.turn(await client.new())
    strange = [message for message in messages if message.get("method") not in (None, "session/update")]
    assert [message["method"] for message in strange] == ["_acme/heartbeat", "$/acme/progress", "session/telepathy"]
    assert not any("id" in message for message in strange)
    assert said(messages) == ["One. ", "Two. ", "Three."]


@REQUESTS.shows("elicitation-unsupported")
async def _(played: Played) -> None:
    client, _, id = await played.start()
    messages = await _answering(client, id, lambda message: UNKNOWN)
    assert len(asked(messages, "elicitation/create")) == 1
    assert said(messages) == ["You cannot be asked, so I guess: Osaka."]


@REQUESTS.shows("cancel-request")
async def _(played: Played) -> None:
    client = await played.client()
    session = await client.new()
    for body in ({"error": {"code": -32800, "message": "Request cancelled"}}, {"result": {"yes": True}}):
        id = await client.prompt(session)
        question, taken_back = await client.next(), await client.next()
        assert question["method"] == "_acme/confirm"
        assert taken_back["method"] == "$/cancel_request"
        assert taken_back["params"] == {"requestId": question["id"]}
        await client.send({"jsonrpc": "2.0", "id": question["id"], **body})
        assert (await client.reply(id))["result"] == {"stopReason": "end_turn"}
        await client.during(1)  # a title


LINES = "1-based: `line` of fs/read_text_file counts from 1 (schema, ReadTextFileRequest)"


@REQUESTS.shows("read-edges", breaks=LINES)
async def _(played: Played) -> None:
    def strict(message: Json) -> Json:
        params = message["params"]
        if params["path"] != f"{CWD}/README.md" or params.get("line") == 0:
            return {"error": {"code": -32602, "message": "no"}}
        return {"result": {"content": ""}}

    def lenient(message: Json) -> Json:
        return {"result": {"content": "all of it"}}

    client, session, id = await played.start()
    messages = await _answering(client, id, strict)
    assert [{key: value for key, value in params.items() if key != "sessionId"} for params in _reads(messages)] == [
        {"path": f"{CWD}/README.md", "line": 0, "limit": 2},
        {"path": f"{CWD}/README.md", "line": 1_000_000},
        {"path": f"{CWD}/README.md", "line": 1, "limit": 0},
        {"path": f"{CWD}/no/such/file.txt"},
        {"path": CWD},
    ]
    assert said(messages) == [
        "Line 0 is an error. ", "Past the end is nothing. ", "No lines are nothing. ", "A missing file is an error. ",
        "A folder is an error.",
    ]  # fmt: skip
    wrong = await _answering(client, await client.prompt(session), lenient)
    assert "".join(said(wrong)).count("!") == 4


def _reads(messages: list[Any]) -> list[Json]:
    return asked(messages, "fs/read_text_file")


# --- terminals


class Terminals:
    """A client's terminals, as far as the wire shows them.

    Args:
        output: what each of them has to show.
    """

    def __init__(self, **output: Any) -> None:
        self.output = output
        self.released: set[str] = set()
        self.made = 0
        self.used: list[str] = []
        self._waiting: list[Any] = []

    def __call__(self, message: Json) -> Json:
        name, id = message["method"].removeprefix("terminal/"), message["params"].get("terminalId")
        self.used.append(name)
        if name == "create":
            self.made += 1
            return {"result": {"terminalId": f"term_{self.made}"}}
        if id in self.released:
            return {"error": {"code": -32602, "message": f"There is no terminal {id}"}}
        if name == "release":
            self.released.add(id)
        results = {"output": {"output": "", "truncated": False} | self.output, "wait_for_exit": {"exitCode": 0}}
        return {"result": results.get(name, {})}


@REQUESTS.shows("terminal-flood")
async def _(played: Played) -> None:
    terminals = Terminals(output="Grüße, 世界 🌊\n", truncated=True)
    client, _, id = await played.start()
    messages = await _answering(client, id, terminals)
    first, second = asked(messages, "terminal/create")
    assert "outputByteLimit" not in first
    assert second["outputByteLimit"] == 1001
    assert first["command"] == second["command"] == "sh"
    assert "10000000" in first["args"][-1]
    assert terminals.used == ["create", "wait_for_exit", "output", "release"] * 2
    assert said(messages) == ["Truncated: true"]


@REQUESTS.shows("terminal-never-exits")
async def _(played: Played) -> None:
    for prompt in ("go", "wait"):
        terminals = Terminals()
        client, session, id = await played.start(prompt)
        waiting = await _until_wait(client, terminals)
        [shown] = await client.during(0.2)
        assert shown["params"]["update"]["content"] == [{"type": "terminal", "terminalId": "term_1"}]
        if prompt == "wait":
            assert await client.during(3000) == []
            await client.cancel(session)
        assert (await client.until(lambda message: "id" in message))["method"] == "terminal/kill"
        terminals(client.seen[-1])
        await client.send({"jsonrpc": "2.0", "id": client.seen[-1]["id"], "result": {}})
        await client.send({"jsonrpc": "2.0", "id": waiting, "result": {"signal": "SIGKILL"}})
        messages = await _answering(client, id, terminals)
        assert terminals.used[-1] == "release"
        reason = "cancelled" if prompt == "wait" else "end_turn"
        assert messages[-1]["result"] == {"stopReason": reason}
        assert said(client.seen) == ([] if prompt == "wait" else ["I have killed it. ", "That is all."])


async def _until_wait(client: Client, terminals: Terminals) -> Any:
    """Answers up to the wait for the exit, which is left open: its id."""
    while True:
        message = await client.until(lambda message: "id" in message)
        if message["method"] == "terminal/wait_for_exit":
            return message["id"]
        await client.send({"jsonrpc": "2.0", "id": message["id"], **terminals(message)})


@REQUESTS.shows("terminal-released-twice")
async def _(played: Played) -> None:
    terminals = Terminals()
    client, session, id = await played.start()
    messages = await _answering(client, id, terminals)
    assert terminals.used == ["create", "release", "release", "output"]
    assert [params["terminalId"] for params in asked(messages, "terminal/release")] == ["term_1"] * 2
    assert said(messages) == ["The second release is an error. ", "It has no output any more."]
    patient = await _answering(client, await client.prompt(session), lambda message: {"result": {"terminalId": "t"}})
    assert said(patient) == ["The second release is fine. ", "It still has output!"]


@pytest.mark.parametrize("name", REQUESTS.checks)
async def test_a_request_happens_as_described(autojump_clock: Any, name: str) -> None:
    await REQUESTS.play(name)


@pytest.mark.parametrize("name", ["terminal-flood", "terminal-never-exits", "terminal-released-twice"])
async def test_a_client_without_terminals_is_not_asked_for_one(autojump_clock: Any, name: str) -> None:
    asks = Catalogue("requests")

    @asks.shows(name)
    async def _(played: Played) -> None:
        client = await played.client()
        await client.call("initialize", protocolVersion=1, clientCapabilities={})
        session = (await client.call("session/new", cwd=CWD, mcpServers=[]))["result"]["sessionId"]
        messages = await client.turn(session)
        assert said(messages)[0] == "This client has no terminals."
        assert not any("method" in message and "id" in message for message in messages)

    await asks.play(name)


def test_every_request_scenario_is_shown() -> None:
    assert set(REQUESTS.checks) == REQUESTS.bundled
