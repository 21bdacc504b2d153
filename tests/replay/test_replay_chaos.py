"""A client bug that chance has found becomes a fixture: chaos, its journal, a scenario made of it, the same trouble."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trio
from click.testing import CliRunner

from mockagent.cli import main
from mockagent.replay import replayed
from mockagent.testing import MockAgent
from tests.plain import StdioClient

Json = dict[str, Any]
ROOT = Path(__file__).parents[2]
CWD = "/home/dev/project"
PATIENCE = 30
"""Seconds, of a clock that jumps, after which nothing more is expected."""

SCENARIO = """
clock: {now: "2026-01-15T09:00:00Z"}
agent: {modes: [{id: ask, name: Ask}, {id: code, name: Code}]}
sessions: {stored: [{id: sess_old, title: Old, history: [{user: Hi}, {say: Hello}]}]}
turns:
  - steps:
      - think: Let me look.
      - {after: 40ms, plan: [{content: Look, status: in_progress}]}
      - read: {path: src/a.py}
        save: {text: /result/content}
      - say: "It says ${saved.text} in ${session.id}, naïvely."
      - tool: {name: edit, title: Edit, ask: true, takes: 60ms, output: done}
      - {after: 20ms, say: That was all.}
      - stop: end_turn
      - {after: 100ms, info: {title: Looked}}
"""


class Robust:
    """A client that takes whatever comes, and always says the same to the same."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.heard = bytearray()
        self.sessions: list[str] = []
        self._read = 0

    async def send(self, id: Any, method: str, params: Json) -> None:
        await self.write({"id": id, "method": method, "params": params})

    async def write(self, message: Json) -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            await self.stream.send_all(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def listen(self) -> None:
        """Takes what comes, until nothing does."""
        with trio.move_on_after(PATIENCE) as patience:
            while data := await self.stream.receive_some():
                patience.deadline = trio.current_time() + PATIENCE
                self.heard += data
                while (end := self.heard.find(b"\n", self._read)) >= 0:
                    line, self._read = bytes(self.heard[self._read : end]), end + 1
                    await self._take(line)

    async def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            return
        if not isinstance(message, dict):
            return
        if message.get("id") == 1 and isinstance(message.get("result"), dict):
            self.sessions.append(str(message["result"].get("sessionId")))
        answer = ANSWERS.get(str(message.get("method")))
        if answer is not None and "id" in message:
            await self.write({"id": message["id"], "result": answer})

    async def converse(self, load: bool) -> None:
        await self.send(0, "initialize", {"protocolVersion": 1, "clientCapabilities": {"fs": {"readTextFile": True}}})
        await self.listen()
        await self.send(1, "session/new", {"cwd": CWD, "mcpServers": []})
        await self.listen()
        await self.send(2, "session/list", {})
        if load:
            await self.send(3, "session/load", {"sessionId": "sess_old", "cwd": CWD, "mcpServers": []})
        await self.listen()
        session = self.sessions[0] if self.sessions else "sess_old"
        for id in (4, 5):
            prompt = [{"type": "text", "text": "Look"}]
            await self.send(id, "session/prompt", {"sessionId": session, "prompt": prompt})
            await self.listen()


ANSWERS: Json = {
    "fs/read_text_file": {"content": "what the client had"},
    "session/request_permission": {"outcome": {"outcome": "selected", "optionId": "allow_once"}},
}


async def talk(scenario: Path, journal: Path, chaos: str | None, seed: int, load: bool) -> bytes:
    """All that a client hears."""
    async with MockAgent(scenario, seed=seed, chaos=chaos, journal=journal).in_memory() as mock:
        client = Robust(mock.connect())
        await client.converse(load)
    return bytes(client.heard)


async def there_and_back(tmp_path: Path, chaos: str | None, seed: int, load: bool = True) -> tuple[bytes, bytes, bytes]:
    """What is heard of chaos, of chaos once more, and of the scenario that was made of its journal."""
    scenario, fixture, journal = tmp_path / "s.yaml", tmp_path / "fixture.yaml", tmp_path / "journal.jsonl"
    scenario.write_text(SCENARIO)
    first = await talk(scenario, journal, chaos, seed, load)
    again = await talk(scenario, tmp_path / "again.jsonl", chaos, seed, load)
    text, left_out = replayed(str(journal))
    assert left_out == []
    fixture.write_text(text)
    return first, again, await talk(fixture, tmp_path / "replayed.jsonl", None, seed, load)


async def test_a_conversation_without_faults_plays_again(tmp_path: Path, autojump_clock: Any) -> None:
    first, _, replay = await there_and_back(tmp_path, None, 1)
    assert replay == first
    assert b"what the client had" in first


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", ["answer", "order", "list", "wire", "life"])
async def test_trouble_that_chance_has_made_plays_again(
    tmp_path: Path, autojump_clock: Any, kind: str, seed: int
) -> None:
    first, again, replay = await there_and_back(tmp_path, f"0.2:{kind}", seed, load=kind != "wire")
    assert again == first
    assert replay == first


@pytest.mark.parametrize(
    ("kinds", "seed"),
    [
        ("order", 103),  # an answer that is late, and makes the next one late
        ("order", 107),  # the answer to a turn waits until the next turn is answered
        ("order", 167),  # the same, of prompts that are refused
        ("answer,order,list,wire,life", 187),  # an answer that is cut short, and never leaves
    ],
)
async def test_answers_that_were_kept_back_are_so_again(
    tmp_path: Path, autojump_clock: Any, kinds: str, seed: int
) -> None:
    first, again, replay = await there_and_back(tmp_path, f"0.2:{kinds}", seed, load="wire" not in kinds)
    assert again == first
    assert replay == first


# --- the story, with real processes


def shown(*args: str) -> str:
    """What a client with a bug shows of one turn: it takes it for granted that each piece of text comes once."""
    command = [sys.executable, "-m", "mockagent", "acp", *args]
    with StdioClient(command, env={"PYTHONPATH": str(ROOT)}) as client:
        client.prompt(client.new())
        updates = [message["params"]["update"] for message in client.heard if message.get("method") == "session/update"]
        client.close()
    return "".join(body["content"]["text"] for body in updates if body["sessionUpdate"] == "agent_message_chunk")


def test_a_client_bug_that_chance_has_found_becomes_a_fixture(tmp_path: Path) -> None:
    scenario, journal, fixture = (str(tmp_path / name) for name in ("s.yaml", "journal.jsonl", "fixture.yaml"))
    Path(scenario).write_text("turns: [{steps: [{say: 'one '}, {say: 'two '}, {say: three}]}]")
    for seed in range(30):
        wrong = shown(scenario, "--chaos", "0.2:copies", "--seed", str(seed), "--journal", journal)
        if wrong != "one two three":
            break
    else:
        pytest.fail("chance has found nothing")
    assert CliRunner().invoke(main, ["replay", journal, "-o", fixture]).exit_code == 0
    assert shown(fixture) == wrong
    assert "chance" not in Path(fixture).read_text()
