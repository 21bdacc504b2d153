"""The journal of a real process: every fault that fires stands there, with its place and what it did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.faults.wire import Client, kinds, process

SCENARIO = """\
legality: violation
sessions: {auto_title: null, unknown: {code: -32001, message: gone}}
turns: [{steps: [{say: one}, {say: two}]}]
faults:
  - {at: say, when: {nth: 1}, copies: 2, edit: {set: /params/update/content/text, to: 1}}
  - {at: say, when: {nth: 2}, edit: {set: /params/update/content/text/x, to: 1}}
  - {at: turn_ended, stderr: ended}
  - {at: stop, split: {parts: 2, into: messages}}
  - {at: session/list, drop: true}
"""


async def test_every_fault_that_fires_stands_in_the_journal(tmp_path: Path) -> None:
    file, journal = tmp_path / "faulty.yaml", tmp_path / "journal.jsonl"
    file.write_text(SCENARIO)
    async with process("acp", "--journal", str(journal), files=file) as child:
        client = Client(child)
        session = await client.new()
        await client.prompt(session)
        messages = [await client.next() for _ in range(5)]
        assert kinds(messages)[:3] == ["agent_message_chunk"] * 3
        await client.call("session/load", sessionId="nobody", cwd="/", mcpServers=[])
        await client.request("session/list")
        await child.leave()
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    faults = [line["detail"] for line in lines if line.get("event") == "fault"]

    def told(number: int) -> list[Any]:
        place = f"{file}:{number}:5"
        return [(fault["effects"], fault["what"], fault["on"]) for fault in faults if fault["place"] == place]

    chunk = "update:agent_message_chunk"
    assert told(5) == [(["edit", "copies"], "fired", chunk)]
    [(effects, what, on)] = told(6)
    assert (effects, on) == (["edit"], chunk)
    assert what.startswith("skipped: ")
    assert told(7) == [(["stderr"], "fired", "turn_ended")]
    assert told(8) == [(["split"], "fired", "reply:session/prompt")]
    assert told(9) == [(["drop"], "fired", "session/list")]
    [shorthand] = [fault for fault in faults if fault.get("shorthand")]
    assert shorthand["place"].startswith(f"{file}:2:")
    ended = next(line for line in lines if line.get("event") == "fault" and line["detail"]["on"] == "turn_ended")
    assert (ended["peer"], ended["session"]) == ("c1", session)
    damaged = [line.get("damaged") for line in lines if line.get("fate") == "damaged"]
    assert ["edit"] in damaged
    assert ["edit", "copies"] in damaged
    assert all(line["message"] is not None for line in lines if line.get("kind") == chunk)
