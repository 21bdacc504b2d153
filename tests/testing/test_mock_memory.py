"""A mock in the test's own trio run: no process, no socket, and the run's clock."""

from __future__ import annotations

import pytest
import trio

from mockagent.testing import MockAgent
from tests.plain import MemoryClient

SCENARIO = """\
name: memory
sessions:
  auto_title: null
  stored: [{id: sess_old, title: Old, cwd: /home/dev/project}]
turns:
  - when: {prompt: wait}
    steps: [{say: A moment}, {after: 1h, say: There}]
  - steps: [{say: Hello}]
"""


async def test_an_hour_takes_no_time(autojump_clock):
    async with MockAgent(SCENARIO).in_memory() as mock:
        client = MemoryClient(mock.connect())
        assert (await client.prompt(await client.new(), "wait"))["result"] == {"stopReason": "end_turn"}
        assert trio.current_time() >= 3600
        mock.verify()


async def test_everything_that_the_thread_can_do_is_possible_here(autojump_clock):
    async with MockAgent(SCENARIO).in_memory() as mock:
        client = MemoryClient(mock.connect())
        session = await client.new()
        mock.fault("list", error="invalid_cursor", when={"times": 1})
        assert "error" in await client.ask("session/list")
        assert "test_mock_memory.py:" in mock.journal.events("fault")[0].detail["place"]
        mock.push(session, title="Fresh")
        assert (await client.until("session/update"))["params"]["update"]["title"] == "Fresh"
        assert {row["id"] for row in mock.sessions} == {session, "sess_old"}
        with pytest.raises(LookupError, match="sess_old"):
            mock.push("sess_none", title="x")
        mock.clear_faults()
        mock.advance(5)
        assert (await mock.wait_for("session/new")).session is None
        with pytest.raises(TimeoutError, match="it sent"):
            await mock.wait_for("session/cancel", timeout=60)
        await mock.reset()
        assert mock.journal.entries == []
        assert mock.report()["failed"] is False


async def test_what_a_test_raises_is_not_wrapped(autojump_clock):
    with pytest.raises(AssertionError, match="ACP-INIT"):
        async with MockAgent(SCENARIO).in_memory() as mock:
            await MemoryClient(mock.connect()).ask("session/list")
            mock.verify()


async def test_a_client_that_leaves_is_followed_by_the_next(autojump_clock):
    async with MockAgent(SCENARIO).in_memory() as mock:
        for _ in range(2):
            stream = mock.connect()
            client = MemoryClient(stream)
            await client.prompt(await client.new())
            await stream.aclose()
            await mock.wait_for("closed")
        before = trio.current_time()
        client = MemoryClient(mock.connect())
        await client.prompt(await client.new(), "wait")
        assert trio.current_time() - before >= 3600


async def test_an_exit_breaks_the_connection(autojump_clock):
    async with MockAgent(SCENARIO).in_memory() as mock:
        client = MemoryClient(mock.connect())
        session = await client.new()
        mock.fault("turn", exit=1)
        with pytest.raises(trio.EndOfChannel):
            await client.prompt(session)
        assert mock.journal.events("exit")
