"""The client's MCP servers: started or connected with their session, called by steps, wound down with it.

The one place where the mock starts a program and opens a connection of its own, because the set-up page asks agents to
do it. Each server has a task; calls are queued for it, and what comes of them goes back to the script as an answer. The
official `mcp` package is imported when the first server is connected, and never before.

Source: ACP v1, "Session Setup", MCP servers; the Model Context Protocol.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import trio

from mockagent.acp import params as p
from mockagent.acp.requests import CannotAsk
from mockagent.errors import Refusal
from mockagent.scenario import model
from mockagent.script.output import Answer

if TYPE_CHECKING:
    from mcp import Client

    from mockagent.acp.connection import Call, Connection
    from mockagent.world.sessions import Session

CONNECT_PATIENCE = 10.0
"""Seconds (real time) in which a server has to be there and to have listed its tools."""

CALL_PATIENCE = 60.0
"""Seconds (real time) after which a call without a `timeout` of its own counts as failed."""

LAST_PATIENCE = 0.5
"""Seconds (real time) that a server still gets when the client has said its last word."""

Settle = Callable[[Answer], None]


def connect(connection: Connection, session: Session, call: Call) -> None:
    """Connects to the servers that a request names, in place of those that the session had here before.

    With `agent.mcp: require` the answer to the request waits for all of them, and is an error if one cannot be had.
    """
    params = call.message.data.get("params") or {}
    named = p.mcp_servers(params.get("mcpServers") or [], http=True, sse=True)
    connection.drop_tools(session.id)
    if not named:
        return
    toolbox = connection.toolboxes[session.id] = Toolbox(connection, session, named)
    if connection.agent.scenario.agent.mcp == "require":
        call.gate = partial(_gate, connection, session, call, toolbox)


def _gate(connection: Connection, session: Session, call: Call, toolbox: Toolbox, reply: Callable[[], None]) -> None:
    def settled(failures: dict[str, str]) -> None:
        if not failures:
            reply()
        else:
            name, why = next(iter(failures.items()))
            connection.outputs.pop(session.id, None)
            connection.agent.close(session)
            connection.drop_tools(session.id)
            if call.method not in ("session/load", "session/resume"):  # it was made for this request alone
                connection.agent.world.sessions.delete(session)
            message = f"The MCP server {name!r} cannot be used: {why}"
            connection.refuse(call, Refusal("internal_error", message, reason="mcp_server_failed", server=name))
        connection.backstage.stage.wake()

    toolbox.when_settled(settled)


class Toolbox:
    """The servers of one session.

    Args:
        connection: the client that named them.
        session: where they belong.
        servers: as the client named them; of two with one name the last one counts.
    """

    def __init__(self, connection: Connection, session: Session, servers: Sequence[p.McpServer]) -> None:
        self._waiting: Callable[[dict[str, str]], None] | None = None
        self._backstage = connection.backstage
        about = connection.agent.scenario.agent
        self._servers = {
            server.name: _Server(
                server,
                about,
                session.cwd,
                partial(self._note, connection, session.id),
                connection.backstage.stage.soon,
            )
            for server in servers
        }
        for server in self._servers.values():
            server.start(connection.backstage.tasks)

    def _note(self, connection: Connection, session: str, event: str, **detail: Any) -> None:
        self._backstage.note(event, connection.peer, session, **detail)
        self._look()

    def when_settled(self, call: Callable[[dict[str, str]], None]) -> None:
        """Calls once every server is there or has failed, with the reasons of those that have."""
        self._waiting = call
        self._look()

    def _look(self) -> None:
        if self._waiting is None or any(server.connecting for server in self._servers.values()):
            return
        waiting, self._waiting = self._waiting, None
        waiting({name: server.failure for name, server in self._servers.items() if server.failure is not None})

    def call(self, wanted: model.McpCall, settle: Settle) -> Callable[[], None]:
        """Calls a tool; the answer comes when the server is there and has done it.

        Returns:
            A function that takes the call back.

        Raises:
            CannotAsk: the client named no such server.
        """
        server = self._servers.get(wanted.server)
        if server is None:
            raise CannotAsk(f"the client named no MCP server {wanted.server!r}")
        return server.call(wanted, settle)

    def hurry(self) -> None:
        """The client says nothing more: what is not there soon does not come."""
        for server in self._servers.values():
            server.hurry()

    def close(self) -> None:
        """Ends all servers; calls that are open fail."""
        self._waiting = None
        for server in self._servers.values():
            server.close()


class _Job:
    """One call that is not answered."""

    __slots__ = ("_settle", "scope", "wanted")

    def __init__(self, wanted: model.McpCall, settle: Settle) -> None:
        self.wanted = wanted
        self._settle: Settle | None = settle
        self.scope = trio.CancelScope()

    def settle(self, answer: Answer) -> None:
        settle, self._settle = self._settle, None
        if settle is not None:
            settle(answer)

    def take_back(self) -> None:
        self.scope.cancel()
        self.settle(Answer(outcome="cancelled"))


class _Server:
    """One server, with the task that talks to it."""

    def __init__(
        self,
        named: p.McpServer,
        about: model.Agent,
        cwd: str,
        note: Callable[..., None],
        soon: Callable[[Callable[[], None]], None],
    ) -> None:
        self._soon = soon
        self._named = named
        self._about = about
        self._cwd = cwd
        self._note = note
        self._scope = trio.CancelScope()
        self._jobs: list[_Job] = []
        self._queue, self._arriving = trio.open_memory_channel[_Job](math.inf)
        self.connecting = True
        self.failure: str | None = None

    def start(self, tasks: trio.Nursery | None) -> None:
        if tasks is None:
            self._fail("there is no event loop to reach it from")
        else:
            tasks.start_soon(self._run)

    def call(self, wanted: model.McpCall, settle: Settle) -> Callable[[], None]:
        job = _Job(wanted, settle)
        if self.failure is not None:  # asked for in the middle of a step, which has to have gone on to hear the answer
            failed = _error(f"the MCP server {self._named.name!r} cannot be used: {self.failure}")
            self._soon(partial(job.settle, failed))
        else:
            self._jobs.append(job)
            self._queue.send_nowait(job)
        return job.take_back

    def hurry(self) -> None:
        self._scope.deadline = min(self._scope.deadline, trio.current_time() + LAST_PATIENCE)

    def close(self) -> None:
        self._scope.cancel()
        self._end("its session has ended")

    # --- the task

    async def _run(self) -> None:
        self._scope.deadline = trio.current_time() + CONNECT_PATIENCE
        try:
            with self._scope:
                await self._talk()
        except Exception as error:
            self._fail(_reason(error))
            return
        late = self._scope.cancelled_caught and self.connecting
        self._fail("it was not there in time" if late else "the connection ended")

    async def _talk(self) -> None:
        try:
            open_client = await trio.to_thread.run_sync(_library)
        except ImportError:
            raise _Missing("the package `mcp` is not installed: pip install 'acp-mockagent[mcp]'") from None
        async with open_client(self._named, self._about, self._cwd) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            self._scope.deadline = math.inf
            self.connecting = False
            self._note("mcp_connected", server=self._named.name, tools=tools)
            async with trio.open_nursery() as nursery:
                async for job in self._arriving:
                    nursery.start_soon(self._perform, client, job)

    async def _perform(self, client: Client, job: _Job) -> None:
        with job.scope, trio.move_on_after(CALL_PATIENCE) as limit:
            try:
                result = await client.call_tool(job.wanted.tool, dict(job.wanted.arguments))
                answer = _answer(result.model_dump(mode="json", by_alias=True, exclude_none=True))
            except Exception as error:
                answer = _error(_reason(error))
            except trio.Cancelled:
                if self._scope.cancel_called:  # the server ends; nobody waits until it has
                    job.settle(_error(f"the MCP server {self._named.name!r} has ended"))
                raise
            job.settle(answer)
        if limit.cancelled_caught:
            job.settle(_error(f"no answer after {CALL_PATIENCE:g} s"))
        self._jobs.remove(job)

    def _fail(self, why: str) -> None:
        if self.failure is None:
            self.connecting = False
            self.failure = why
            self._note("mcp_failed", server=self._named.name, why=why)
            self._end(why)

    def _end(self, why: str) -> None:
        for job in self._jobs:
            job.settle(_error(f"the MCP server {self._named.name!r}: {why}"))


class _Missing(Exception):
    """The library is not there."""


def _answer(result: dict[str, Any]) -> Answer:
    """What a tool gave back, in MCP's own form; its texts are the words."""
    texts = [block["text"] for block in result.get("content", []) if block.get("type") == "text"]
    outcome: Any = "error" if result.get("isError") else "result"
    return Answer(outcome=outcome, value=result, words="\n".join(texts), message={"result": result})


def _error(why: str) -> Answer:
    return Answer(outcome="error", value={"message": why}, words=why, message={"error": {"message": why}})


def _reason(error: BaseException) -> str:
    """The first real reason inside the groups in which it comes."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__


# --- the library


def _library() -> Callable[[p.McpServer, model.Agent, str], AbstractAsyncContextManager[Client]]:
    """Imports it (a second, so it is done in a thread) and gives what opens a connection.

    Raises:
        ImportError: it is not installed.
    """
    import mcp.client.stdio as stdio
    from mcp import Client
    from mcp.client.sse import sse_client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client
    from mcp_types import Implementation

    # A server that does not leave by itself is not waited for as long as usual: the process has to be gone soon.
    stdio.PROCESS_TERMINATION_TIMEOUT = 0.4
    stdio.FORCE_KILL_TIMEOUT = 0.2

    @asynccontextmanager
    async def http(named: p.McpHttp) -> Any:
        async with (
            create_mcp_http_client(headers=_headers(named)) as client,
            streamable_http_client(named.url, http_client=client) as streams,
        ):
            yield streams

    def transport(named: p.McpServer, cwd: str) -> Any:
        if isinstance(named, p.McpStdio):
            return stdio.stdio_client(_program(named, cwd), errlog=_stderr())
        return sse_client(named.url, headers=_headers(named)) if isinstance(named, p.McpSse) else http(named)  # type: ignore[arg-type]

    def _program(named: p.McpStdio, cwd: str) -> stdio.StdioServerParameters:
        import os

        env = {pair.name: pair.value for pair in named.env}
        where = cwd if os.path.isdir(cwd) else None  # the client may be on another machine
        return stdio.StdioServerParameters(command=named.command, args=list(named.args), env=env, cwd=where)

    def open_client(named: p.McpServer, about: model.Agent, cwd: str) -> AbstractAsyncContextManager[Client]:
        info = Implementation(name=about.name, version=about.version)
        return Client(transport(named, cwd), client_info=info)

    return open_client


def _stderr() -> Any:
    """What servers say on stderr is for the person at the terminal, as the mock's own complaints are."""
    import sys

    return sys.__stderr__


def _headers(named: p.McpRemote) -> dict[str, str]:
    return {pair.name: pair.value for pair in named.headers}
