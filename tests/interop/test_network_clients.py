"""Released clients over the network: plain `ws`, a browser, and the Python SDK's two streams.

The npm SDK has its own tests beside these.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import cast

import pytest
from acp import connect_to_agent
from acp.http import create_http_stream
from acp.interfaces import Client

from tests.interop.browser import visit
from tests.interop.client import Child
from tests.interop.conversation import run
from tests.interop.sdk import PATIENCE, Connected, Recorder, dialled, greet

# --- Node


def test_plain_ws_talks_and_its_binary_frames_are_taken(node: str, address: str) -> None:
    happened = run(node, "raw.mjs", f"ws://{address}/acp")
    assert happened["code"] == 1000
    assert happened["connection"].startswith("conn_")
    assert happened["pongs"] == 1
    assert happened["binary"] == 0
    assert "session/request_permission" in happened["kinds"]
    assert happened["kinds"][-1] == "reply"


# --- a browser


def test_a_page_in_a_browser_talks_to_the_mock(address: str, tmp_path: Path) -> None:
    happened = visit("page.html", tmp_path / "profile", agent=f"ws://{address}/acp")
    assert happened["code"] == 1000
    assert happened["shown"] == "I would like to change a file."
    assert happened["count"] >= 6


# --- the Python SDK


@asynccontextmanager
async def posted(url: str) -> AsyncIterator[Connected]:
    """Connects over Streamable HTTP, as the SDK does."""
    client = Recorder()
    transport = create_http_stream(url)
    async with (
        connect_to_agent(cast(Client, client), transport, use_unstable_protocol=True) as agent,
        asyncio.timeout(PATIENCE),
    ):
        yield await greet(agent, client)


Connect = Callable[[str], AbstractAsyncContextManager[Connected]]

BOTH: list[tuple[str, Connect]] = [("ws", dialled), ("http", posted)]


@pytest.mark.parametrize(("scheme", "connect"), BOTH, ids=["ws", "http"])
def test_the_python_sdk_holds_a_conversation(address: str, scheme: str, connect: Connect) -> None:
    async def main() -> None:
        async with connect(f"{scheme}://{address}/acp") as mock:
            session = await mock.new()
            assert await mock.prompt(session, "change it") == "end_turn"
            assert len(mock.client.asked) == 1
            assert mock.client.text(session) == "I would like to change a file."
            listed = await mock.agent.list_sessions()
            assert session in {row.session_id for row in listed.sessions}
            held = asyncio.create_task(mock.prompt(session, "think and hang"))
            await mock.client.until("agent_thought_chunk")  # over HTTP a cancel may overtake its prompt
            await mock.agent.cancel(session_id=session)
            assert await held == "cancelled"

    asyncio.run(main())


@pytest.mark.parametrize(("scheme", "connect"), BOTH, ids=["ws", "http"])
@pytest.mark.parametrize("way", ["load_session", "resume_session"])
@pytest.mark.parametrize("session", ["sess_old", "sess_bare"])
def test_the_python_sdk_comes_back_to_a_session_and_goes_on(
    address: str, scheme: str, connect: Connect, way: str, session: str
) -> None:
    """Over HTTP it names no session in the headers here, and opens its stream only when a message tells it to."""

    async def main() -> None:
        async with connect(f"{scheme}://{address}/acp") as mock:
            await getattr(mock.agent, way)(cwd="/home/dev/project", session_id=session, mcp_servers=[])
            if way == "load_session" and session == "sess_old":
                assert mock.client.text(session) == "Because."
            assert await mock.prompt(session, "change it") == "end_turn"
            assert mock.client.text(session).endswith("I would like to change a file.")

    asyncio.run(main())


# --- the process


def test_serve_tells_where_it_listens_and_who_connects(start: type[Child], spine: str) -> None:
    server = start("serve", spine, "demo", "--port", "0")
    address = server.address()

    async def main() -> None:
        async with dialled(f"ws://{address}/acp"):
            pass

    asyncio.run(main())
    server.signal(signal.SIGTERM)
    assert server.gone() == 0
    told = server.stderr
    assert f"  ACP  ws://{address}/acp  http://{address}/acp  (spine)" in told
    assert f"  ACP  ws://{address}/acp/demo  http://{address}/acp/demo  (demo)" in told
    assert f"  AAP  http://{address}/aap" in told
    [line] = [line for line in told if line.startswith("mockagent: c1: ")]
    assert line.startswith("mockagent: c1: ACP over WebSocket from 127.0.0.1:")
    assert line.endswith(", plays spine")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_in_order_with_code_1001(start: type[Child], spine: str, number: signal.Signals) -> None:
    from websockets.sync.client import connect

    server = start("serve", spine, "--port", "0")
    with connect(f"ws://{server.address()}/acp") as socket:
        socket.send('{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}')
        assert '"protocolVersion":1' in str(socket.recv(timeout=PATIENCE))
        server.signal(number)
        with pytest.raises(Exception, match="1001"):
            socket.recv(timeout=PATIENCE)
    assert server.gone() == 0


def test_a_port_that_is_taken_is_told_and_nothing_else(start: type[Child], spine: str) -> None:
    port = start("serve", spine, "--port", "0").address().rpartition(":")[2]
    second = start("serve", spine, "--port", port)
    assert second.gone() == 2
    [told] = second.stderr
    assert told.startswith(f"mockagent: cannot listen on 127.0.0.1:{port}: ")
    assert told.endswith("--port 0 picks a free port")
