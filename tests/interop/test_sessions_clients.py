"""Released clients and the sessions: they list, page, load, resume, close and delete, and come back after a restart."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

from tests.interop.sdk import Connected, spawned
from tests.official import PACKAGES

PATIENCE = 60


def test_the_python_sdk_does_all_that_can_be_done_with_sessions(command: str) -> None:
    async def conversation() -> None:
        async with spawned(command, "history", "--speed", "0") as mock:
            rows = await every_page(mock)
            assert len(rows) == len({row.session_id for row in rows}) == 103
            assert "sess_auth" in {row.session_id for row in rows}
            api = await every_page(mock, "/home/dev/api")
            assert api == [row for row in rows if row.cwd == "/home/dev/api"]
            await load_and_go_on(mock)
            await resume_close_delete(mock)
            await load_an_invented_one(mock, next(row for row in rows if row.title and "_auth" not in row.session_id))

    asyncio.run(conversation())


async def every_page(mock: Connected, cwd: str | None = None) -> list[Any]:
    rows: list[Any] = []
    cursor: str | None = None
    while True:
        page = await mock.agent.list_sessions(cwd=cwd, cursor=cursor)
        rows += page.sessions
        cursor = page.next_cursor
        if cursor is None:
            return rows


async def load_and_go_on(mock: Connected) -> None:
    await mock.agent.load_session(cwd="/home/dev/api", session_id="sess_auth", mcp_servers=[])
    assert "The token expires after an hour" in mock.client.text("sess_auth")
    assert mock.client.kinds("sess_auth")[:2] == ["user_message_chunk", "agent_thought_chunk"]
    assert await mock.prompt("sess_auth", "go on") == "end_turn"
    assert mock.client.text("sess_auth").endswith("This is turn 3 of sess_auth. You said: go on")


async def resume_close_delete(mock: Connected) -> None:
    resumed = await mock.agent.resume_session(cwd="/home/dev/api", session_id="sess_release", mcp_servers=[])
    assert resumed.modes is not None
    assert mock.client.kinds("sess_release") == []
    await mock.agent.close_session(session_id="sess_release")
    await mock.agent.load_session(cwd="/home/dev/api", session_id="sess_release", mcp_servers=[])
    assert mock.client.text("sess_release") == "Done. It has five entries."
    for _ in range(2):  # the SDK has no method of its own for it
        await mock.agent._conn.send_request("session/delete", {"sessionId": "sess_release"})
    assert "sess_release" not in {row.session_id for row in await every_page(mock)}


async def load_an_invented_one(mock: Connected, row: Any) -> None:
    await mock.agent.load_session(cwd=row.cwd, session_id=row.session_id, mcp_servers=[])
    assert "user_message_chunk" in mock.client.kinds(row.session_id)


def test_the_python_sdk_finds_a_session_again_after_a_restart(command: str, tmp_path: Path) -> None:
    state = str(tmp_path / "state.db")

    async def first() -> str:
        async with spawned(command, "echo", "--speed", "0", "--state", state) as mock:
            session = await mock.new()
            await mock.prompt(session, "remember me")
            return session

    async def second(session: str) -> None:
        async with spawned(command, "echo", "--speed", "0", "--state", state) as mock:
            [row] = (await mock.agent.list_sessions()).sessions
            assert (row.session_id, row.title) == (session, "remember me")
            await mock.agent.load_session(cwd="/home/dev/project", session_id=session, mcp_servers=[])
            assert mock.client.text(session, "user_message_chunk") == "remember me"
            await mock.prompt(session, "again")
            assert "Turn 2" in mock.client.text(session)

    asyncio.run(second(asyncio.run(first())))


def test_acpx_resumes_a_session_in_another_process(node: str, environment: dict[str, str], tmp_path: Path) -> None:
    folder, journal = tmp_path / "project", tmp_path / "journal.jsonl"
    folder.mkdir()
    package = json.loads((PACKAGES / "acpx/package.json").read_text())
    agent = f"mockagent acp echo --speed 0 --state {tmp_path / 'state.db'} --journal {journal}"
    acpx = [node, str(PACKAGES / "acpx" / package["bin"]["acpx"]), "--cwd", str(folder), "--agent", agent]

    def run(*words: str) -> str:
        done = subprocess.run(
            [*acpx, *words],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("sessions", "new")
    try:
        assert "Turn 1" in run("--ttl", "1", "prompt", "one")
        calls = [json.loads(line) for line in journal.read_text().splitlines()]
        methods = [call["kind"] for call in calls if call.get("direction") == "in"]
        assert "session/resume" in methods or "session/load" in methods
        assert methods.count("session/new") <= 1
    finally:
        run("sessions", "close")
