"""A client made with the official Python SDK which says what happens to it, for `bench/released.py`.

    python python_sdk.py PLAN stdio COMMAND ARGS...
    python python_sdk.py PLAN ws|http URL

It does what a right client does as far as the SDK lets it, with an end to every wait, and writes one JSON line to
stdout for everything that it notices. PLAN is `plain`, `cancel` (it cancels the first turn), `deny` (it chooses what
rejects) or `pairs` (it makes and loads sessions two at a time).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import Awaitable, Sequence
from typing import Any, cast

from acp import PROTOCOL_VERSION, connect_to_agent, spawn_agent_process, text_block
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

PATIENCE = 2.0
START = 5.0
BREATH = 0.1
PAGES = 30
CWD = "/home/dev/project"


def note(**what: Any) -> None:
    """Writes down something that happened."""
    print(json.dumps({"at": time.time(), **what}), flush=True)


class Polite:
    """Answers all that it is asked; permissions with cancelled after a cancel and for unknown sessions."""

    def __init__(self, plan: str) -> None:
        self.holds = plan == "cancel"
        self.wanted = "reject" if plan == "deny" else ""
        self.known: set[str] = set()
        self.news = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def session_update(self, session_id: str, update: Any, **more: Any) -> None:
        self.news.set()
        if update.session_update == "agent_message_chunk" and update.content.type == "text":
            note(said=update.content.text, session=session_id)

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **more: Any
    ) -> RequestPermissionResponse:
        self.news.set()
        if self.holds:
            await self.cancelled.wait()
        if self.cancelled.is_set() or not options or session_id not in self.known:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        option = next((option for option in options if option.kind.startswith(self.wanted)), options[0])
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=option.option_id))

    async def read_text_file(
        self, session_id: str, path: str, line: int | None = None, limit: int | None = None, **more: Any
    ) -> ReadTextFileResponse:
        lines = ["one\n", "two\n"][max((line or 1) - 1, 0) :]
        return ReadTextFileResponse(content="".join(lines if limit is None else lines[:limit]))

    async def write_text_file(self, session_id: str, path: str, content: str, **more: Any) -> WriteTextFileResponse:
        return WriteTextFileResponse()

    def on_connect(self, conn: Any) -> None:
        """The connection is not needed here."""


async def call(method: str, work: Awaitable[Any], patience: float = PATIENCE) -> Any:
    """What comes of a call; None for an error, and for nothing in time."""
    (got,) = await calls(method, [work], patience)
    return got


async def calls(method: str, works: Sequence[Awaitable[Any]], patience: float = PATIENCE) -> list[Any]:
    """The same for some at once."""
    tasks = [asyncio.ensure_future(work) for work in works]
    await asyncio.wait(tasks, timeout=patience)
    return [settle(method, task) for task in tasks]


def settle(method: str, task: asyncio.Future[Any]) -> Any:
    """Writes down how a call ended, and gives up on one that did not."""
    if not task.done():
        note(call=method, end="pending")
        task.cancel()
        return None
    if task.cancelled() or task.exception():
        error = None if task.cancelled() else task.exception()
        note(call=method, end="error", why=f"{type(error).__name__}: {error}"[:300])
        return None
    note(call=method, end="ok")
    return task.result()


async def turn(agent: Any, client: Polite, session: str, words: str) -> None:
    """Plays a turn; cancels it when it takes too long, or when the plan says so."""
    client.news.clear()
    task = asyncio.ensure_future(agent.prompt(session_id=session, prompt=[text_block(words)]))
    if client.holds:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(client.news.wait(), PATIENCE / 2)
    else:
        await asyncio.wait([task], timeout=PATIENCE)
    if not task.done():
        client.cancelled.set()
        await call("session/cancel", agent.cancel(session_id=session))
        await asyncio.wait([task], timeout=PATIENCE)
    settle("session/prompt", task)
    client.holds = False
    client.cancelled.clear()
    await asyncio.sleep(BREATH)


async def pages(agent: Any) -> list[Any]:
    """All rows of the list, as long as pages bring new ones."""
    rows: dict[str, Any] = {}
    cursor: str | None = None
    for _ in range(PAGES):
        page = await call("session/list", agent.list_sessions(cursor=cursor) if cursor else agent.list_sessions())
        before = len(rows)
        rows.update({row.session_id: row for row in page.sessions} if page else {})
        if page is None or not page.next_cursor or len(rows) == before:
            break
        cursor = page.next_cursor
    return list(rows.values())


async def live(agent: Any, client: Polite, plan: str) -> None:
    """Does everything once."""
    able = ClientCapabilities(fs=FileSystemCapabilities(read_text_file=True, write_text_file=True))
    about = Implementation(name="outcomes", version="1.0.0")
    hello = await call(
        "initialize",
        agent.initialize(protocol_version=PROTOCOL_VERSION, client_capabilities=able, client_info=about),
        START,
    )
    if hello is None:
        return
    if hello.protocol_version != PROTOCOL_VERSION:
        note(refused=f"protocol version {hello.protocol_version}")
        return
    can = hello.agent_capabilities
    more = can.session_capabilities if can else None
    twice = 2 if plan == "pairs" else 1

    async def make() -> Any:
        return (await calls("session/new", [agent.new_session(cwd=CWD, mcp_servers=[]) for _ in range(twice)]))[0]

    made = await make()
    if made is None and hello.auth_methods:
        await call("authenticate", agent.authenticate(method_id=hello.auth_methods[0].id))
        made = await make()
    if made is None:
        return
    client.known.add(made.session_id)
    for words in ("hi", "go"):
        await turn(agent, client, made.session_id, words)
    stored = await pages(agent) if more and more.list else []
    chosen = next((row for row in stored if row.session_id != made.session_id), None)
    old, cwd = (chosen.session_id, chosen.cwd) if chosen else (made.session_id, CWD)
    cwd = cwd if cwd.startswith("/") else CWD
    client.known.add(old)
    if can and can.load_session:
        loads = [agent.load_session(session_id=old, cwd=cwd, mcp_servers=[]) for _ in range(twice)]
        if any(await calls("session/load", loads)) or await call(
            "session/load", agent.load_session(session_id=old, cwd=cwd, mcp_servers=[])
        ):
            await turn(agent, client, old, "again")
    if more and more.close:
        await call("session/close", agent.close_session(session_id=old))
    if more and more.resume:
        await call("session/resume", agent.resume_session(session_id=old, cwd=cwd, mcp_servers=[]))


async def main(plan: str, over: str, *target: str) -> None:
    asyncio.get_running_loop().set_exception_handler(lambda loop, told: note(noise=str(told.get("exception"))[:300]))
    client = Polite(plan)
    if over == "stdio":
        async with spawn_agent_process(cast(Client, client), *target, use_unstable_protocol=True) as (agent, process):
            drained = asyncio.ensure_future(process.stderr.read() if process.stderr else asyncio.sleep(0))
            await live(agent, client, plan)
            note(left=process.returncode)
            drained.cancel()
    elif over == "ws":
        from acp.ws.client import create_websocket_stream

        stream: Any = await create_websocket_stream(target[0])
        async with connect_to_agent(cast(Client, client), stream, use_unstable_protocol=True) as agent:
            await live(agent, client, plan)
    else:
        import httpx
        from acp.http import create_http_stream

        web = httpx.AsyncClient(timeout=httpx.Timeout(None))  # its own one speaks HTTP/2, which mockagent does not
        stream = create_http_stream(target[0], client=web)
        async with web, connect_to_agent(cast(Client, client), stream, use_unstable_protocol=True) as agent:
            await live(agent, client, plan)


if __name__ == "__main__":
    try:
        asyncio.run(main(*sys.argv[1:]))
    except Exception as error:  # a client that sees the error can show it
        note(call="connection", end="error", why=f"{type(error).__name__}: {error}"[:300])
    note(end=True)
