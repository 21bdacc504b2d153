"""A small client made with the official Python SDK, for `bench/clients.py`.

    python python_sdk.py stdio COMMAND ARGS...
    python python_sdk.py ws URL
    python python_sdk.py http URL

It does what a right client does as far as the SDK lets it; every wait has an end.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Awaitable
from typing import Any, cast

import httpx
from acp import PROTOCOL_VERSION, connect_to_agent, spawn_agent_process, text_block
from acp.http import create_http_stream
from acp.interfaces import Client
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    FileSystemCapabilities,
    Implementation,
    ReadTextFileResponse,
    RequestPermissionResponse,
    WriteTextFileResponse,
)
from acp.ws.client import create_websocket_stream

PATIENCE = 2.0
CWD = "/home/dev/project"


class Polite:
    """Answers all that it is asked; permissions with cancelled once it has cancelled."""

    cancelled = False

    async def session_update(self, session_id: str, update: Any, **more: Any) -> None:
        """Nothing is shown."""

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **more: Any
    ) -> RequestPermissionResponse:
        if self.cancelled or not options:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=options[0].option_id))

    async def read_text_file(
        self, session_id: str, path: str, line: int | None = None, limit: int | None = None, **more: Any
    ) -> ReadTextFileResponse:
        lines = ["one\n", "two\n"][max((line or 1) - 1, 0) :]
        return ReadTextFileResponse(content="".join(lines if limit is None else lines[:limit]))

    async def write_text_file(self, session_id: str, path: str, content: str, **more: Any) -> WriteTextFileResponse:
        return WriteTextFileResponse()

    def on_connect(self, conn: Any) -> None:
        """The connection is not needed here."""


async def attempt(work: Awaitable[Any]) -> Any:
    """What comes of a call; None for an error, and for nothing in time."""
    with contextlib.suppress(Exception):
        return await asyncio.wait_for(asyncio.ensure_future(work), PATIENCE)
    return None


async def live(agent: Any, client: Polite) -> None:
    """Does everything once."""
    able = ClientCapabilities(fs=FileSystemCapabilities(read_text_file=True, write_text_file=True))
    hello = await attempt(
        agent.initialize(
            protocol_version=PROTOCOL_VERSION,
            client_capabilities=able,
            client_info=Implementation(name="polite", version="1.0.0"),
        )
    )
    if hello is None or hello.protocol_version != 1:
        return
    can = hello.agent_capabilities
    made = await attempt(agent.new_session(cwd=CWD, mcp_servers=[]))
    if made is None and hello.auth_methods:
        await attempt(agent.authenticate(method_id=hello.auth_methods[0].id))
        made = await attempt(agent.new_session(cwd=CWD, mcp_servers=[]))
    if made is None:
        return
    session = made.session_id
    for words in ("hi", "go"):
        turn = asyncio.ensure_future(agent.prompt(session_id=session, prompt=[text_block(words)]))
        done, _ = await asyncio.wait([turn], timeout=PATIENCE)
        if not done:
            client.cancelled = True
            await attempt(agent.cancel(session_id=session))
            await asyncio.wait([turn], timeout=PATIENCE)
            client.cancelled = False
        turn.cancel()
        with contextlib.suppress(BaseException):
            await turn
    if can and can.session_capabilities and can.session_capabilities.list:
        page = await attempt(agent.list_sessions())
        for _ in range(5):
            if page is None or not page.next_cursor:
                break
            page = await attempt(agent.list_sessions(cursor=page.next_cursor))
    if can and can.load_session:
        await attempt(agent.load_session(session_id=session, cwd=CWD, mcp_servers=[]))
    if can and can.session_capabilities and can.session_capabilities.close:
        await attempt(agent.close_session(session_id=session))


async def main(over: str, *target: str) -> None:
    client = Polite()
    if over == "ws":
        async with connect_to_agent(
            cast(Client, client), await create_websocket_stream(target[0]), use_unstable_protocol=True
        ) as agent:
            await live(agent, client)
        return
    if over == "http":
        web = httpx.AsyncClient(timeout=httpx.Timeout(None))  # its own one speaks HTTP/2, which mockagent does not
        async with (
            web,
            connect_to_agent(
                cast(Client, client), create_http_stream(target[0], client=web), use_unstable_protocol=True
            ) as agent,
        ):
            await live(agent, client)
        return
    async with spawn_agent_process(cast(Client, client), *target, use_unstable_protocol=True) as (agent, _):
        await live(agent, client)


if __name__ == "__main__":
    with contextlib.suppress(Exception):
        asyncio.run(main(*sys.argv[1:]))
