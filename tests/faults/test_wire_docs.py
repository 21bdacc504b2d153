"""The fault guide: every example is a scenario without mistakes, and every fault in it fires."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import trio

from mockagent.scenario.load import load_text
from tests.faults.wire import CWD, ROOT, Aap, Client, Served, Socket, process, serving

TEXT = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```yaml([^\n]*)\n(.*?)^```$", TEXT, re.S | re.M)
PLAIN = [text for kind, text in BLOCKS if not kind.strip()]
OF_A_PROCESS = [text for kind, text in BLOCKS if kind.strip() == "process"]
GRANTED = {"outcome": {"outcome": "selected", "optionId": "allow_once"}}

TURNS = """
turns:
  - steps:
      - think: Let me see.
      - tool: {name: look, kind: search, title: Look, output: Found.}
      - {say: "Grüße eins. "}
      - {say: "Grüße zwei. "}
      - {say: "Grüße drei. "}
      - {say: "Grüße vier. "}
      - {say: "Grüße fünf. "}
      - {wait: 1s}
"""


def whole(example: str) -> str:
    """An example with turns of its own."""
    return f"legality: unspecified\n{example}\n{TURNS}"


def test_the_guide_has_examples() -> None:
    assert len(PLAIN) >= 8
    assert len(OF_A_PROCESS) >= 2


async def a_little_of_everything_over_acp(server: Served) -> None:
    client = await server.client()
    client.answers["session/request_permission"] = GRANTED
    with trio.move_on_after(300):
        with trio.move_on_after(5):  # noise may hide the reply
            await client.initialize()
        assert isinstance(client.link, Socket)
        await client.link.send(9, b"")
        ids = [await client.request("session/new", cwd=CWD, mcpServers=[]) for _ in range(3)]
        for id in ids[1:]:
            await client.reply(id)
        reply = next(m for m in client.seen if isinstance(m, dict) and "sessionId" in (m.get("result") or {}))
        session = reply["result"]["sessionId"]
        for cursor in (None, "made up", None):
            await client.call("session/list", **({} if cursor is None else {"cursor": cursor}))
        for method in ("session/load", "session/resume"):
            await client.call(method, sessionId="nobody", cwd=CWD, mcpServers=[])
            await client.call(method, sessionId=session, cwd=CWD, mcpServers=[])
        for _ in range(3):
            with trio.move_on_after(20):
                await client.reply(await client.prompt(session, "the weather"))
        await client.request("session/close", sessionId=session)
        await client.during(5)
        await client.request("session/prompt", sessionId=session, prompt=[])
        await client.during(5)
    await one_list(server)


async def one_list(server: Served) -> None:
    """A whole list, and a cancelled turn, from a client of its own."""
    client = await server.client()
    with trio.move_on_after(30):
        await client.initialize()
        cursor = None
        for _ in range(5):
            reply = await client.call("session/list", **({} if cursor is None else {"cursor": cursor}))
            cursor = (reply.get("result") or {}).get("nextCursor")
        session = await client.new()
        await client.prompt(session)
        await client.cancel(session)
        await client.during(5)


async def a_little_of_everything_over_aap(server: Served) -> None:
    aap = await server.aap()
    for path in ("/meta", "/meta", "/sessions", "/sessions/nobody"):
        await aap.call("GET", path)
    for _ in range(3):
        await aap.ask("POST", "/sessions", {"agent": {"name": "mock-agent"}})
        reply = await aap.reply()
        if reply is not None and reply.status == 201:
            break
    session = reply.json["sessionId"] if reply is not None else ""
    for _ in range(4):
        with trio.move_on_after(30):
            await turn(aap, session)
        if aap.raw.ended is not None:
            aap = await server.aap()


async def turn(aap: Aap, session: str) -> None:
    await aap.begin(session, "the weather")
    await aap.reply()


@pytest.mark.parametrize("example", PLAIN, ids=lambda text: text.split("at: ")[-1][:24])
async def test_every_fault_of_an_example_fires(autojump_clock: Any, example: str) -> None:
    async with serving(f"name: guide\n{whole(example)}".replace("legality: unspecified\n", "")) as server:
        await a_little_of_everything_over_acp(server)
        await a_little_of_everything_over_aap(server)
        fired = {detail["place"] for detail in server.seen.of("fault") if detail["what"] == "fired"}
        missing = [str(fault.place) for fault in server.host.scenarios[0].faults if str(fault.place) not in fired]
        assert not missing, (missing, server.seen.skipped)


@pytest.mark.parametrize("example", OF_A_PROCESS, ids=lambda text: text.split("at: ")[-1][:24])
async def test_every_fault_of_a_process_fires(tmp_path: Path, example: str) -> None:
    file, journal = tmp_path / "guide.yaml", tmp_path / "journal.jsonl"
    file.write_text(whole(example), encoding="utf-8")
    async with process("acp", "--journal", str(journal), files=file) as child:
        client = Client(child)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(child.stderr.rest)
            await client.prompt(await client.new())
            with trio.move_on_after(1):
                await client.rest()
            if child.child.returncode is None:
                await child.leave()
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    fired = {line["detail"]["place"] for line in lines if line.get("event") == "fault"}
    assert fired == {str(fault.place) for fault in load_text(file.read_text(), str(file)).faults}
