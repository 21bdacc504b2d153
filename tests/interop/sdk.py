"""The official Python SDK as a client: what its tests share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

from acp import PROTOCOL_VERSION, RequestError, connect_to_agent, spawn_agent_process, text_block
from acp.client.connection import ClientSideConnection
from acp.interfaces import Client
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    FileSystemCapabilities,
    Implementation,
    InitializeResponse,
    ReadTextFileResponse,
    RequestPermissionResponse,
    WriteTextFileResponse,
)
from acp.ws.client import create_websocket_stream

PATIENCE = 30.0
"""Seconds after which a conversation counts as stuck."""

Decide = Callable[[list[Any]], RequestPermissionResponse]


def pick(kind: str) -> Decide:
    """Chooses the option of a kind."""

    def decide(options: list[Any]) -> RequestPermissionResponse:
        chosen = next(option for option in options if option.kind == kind)
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen.option_id))

    return decide


def cancelled(options: list[Any]) -> RequestPermissionResponse:
    """What a client answers when the user has cancelled the turn."""
    return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))


ALLOW = pick("allow_once")


class Recorder:
    """A client that keeps what it is told and answers what it is asked.

    Attributes:
        heard: (session id, kind of update, update) in the order of arrival.
        asked: the tool calls that permission was asked for.
        decide: answers permission requests.
        willing: permission requests wait until it is set.
    """

    def __init__(self, decide: Decide = ALLOW) -> None:
        self.heard: list[tuple[str, str, Any]] = []
        self.asked: list[Any] = []
        self.decide = decide
        self.willing = asyncio.Event()
        self.willing.set()
        self.files: list[str] = []
        self._news = asyncio.Event()

    async def session_update(self, session_id: str, update: Any, **more: Any) -> None:
        self._keep(session_id, update.session_update, update)

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **more: Any
    ) -> RequestPermissionResponse:
        self.asked.append(tool_call)
        self._keep(session_id, "permission", tool_call)
        await self.willing.wait()
        return self.decide(options)

    async def read_text_file(self, session_id: str, path: str, **more: Any) -> ReadTextFileResponse:
        self.files.append(path)
        return ReadTextFileResponse(content="one\ntwo\n")

    async def write_text_file(self, session_id: str, path: str, content: str, **more: Any) -> WriteTextFileResponse:
        self.files.append(path)
        return WriteTextFileResponse()

    def on_connect(self, conn: Any) -> None:
        """The connection is not needed here."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    def _keep(self, session: str, kind: str, what: Any) -> None:
        self.heard.append((session, kind, what))
        self._news.set()
        self._news = asyncio.Event()

    async def until(self, kind: str, count: int = 1) -> Any:
        """Waits until so many of a kind have come; returns the last one."""
        while len(found := [what for _, at, what in self.heard if at == kind]) < count:
            await self._news.wait()
        return found[count - 1]

    def kinds(self, session: str | None = None) -> list[str]:
        """The kinds that came, in order, repetitions of chunks as one."""
        made: list[str] = []
        for at, kind, _ in self.heard:
            if session in (None, at) and not (made and made[-1] == kind and kind.endswith("_chunk")):
                made.append(kind)
        return made

    def text(self, session: str | None = None, kind: str = "agent_message_chunk") -> str:
        """All that was said."""
        return "".join(what.content.text for at, name, what in self.heard if name == kind and session in (None, at))


class Connected:
    """An SDK connection with a mock agent at its other end.

    Attributes:
        control: where the mock is told things; "" if nothing was asked for.
    """

    def __init__(self, agent: ClientSideConnection, client: Recorder, hello: InitializeResponse) -> None:
        self.agent = agent
        self.client = client
        self.hello = hello
        self.control = ""

    async def new(self, cwd: str = "/home/dev/project") -> str:
        """Makes a session; returns its id."""
        return (await self.agent.new_session(cwd=cwd, mcp_servers=[])).session_id

    async def prompt(self, session: str, text: str) -> str:
        """Plays a turn; returns its stop reason."""
        return (await self.agent.prompt(session_id=session, prompt=[text_block(text)])).stop_reason


async def greet(agent: ClientSideConnection, client: Recorder) -> Connected:
    """Initializes a connection."""
    able = ClientCapabilities(fs=FileSystemCapabilities(read_text_file=True, write_text_file=True))
    about = Implementation(name="interop", version="1")
    hello = await agent.initialize(protocol_version=PROTOCOL_VERSION, client_capabilities=able, client_info=about)
    return Connected(agent, client, hello)


@asynccontextmanager
async def spawned(command: str, *args: str, decide: Decide = ALLOW, faultless: bool = True) -> AsyncIterator[Connected]:
    """Starts `mockagent acp` as the SDK does. The process has to end by itself, with a quiet stderr.

    Args:
        command: the installed command.
        args: behind `acp`.
        decide: answers permission requests.
        faultless: False where the test breaks a rule of the protocol on purpose, and is told of it.
    """
    client = Recorder(decide)
    async with spawn_agent_process(cast(Client, client), command, "acp", *args, use_unstable_protocol=True) as (
        agent,
        process,
    ):
        assert process.stderr is not None
        async with asyncio.timeout(PATIENCE):
            mock = await greet(agent, client)
            if "--control" in args:
                mock.control = (await process.stderr.readline()).decode().split()[-1]
            yield mock
    noise = await process.stderr.read()
    assert b"Traceback" not in noise
    assert noise.startswith(b"The client failed") if noise else True
    assert noise == b"" or not faultless
    assert process.returncode == 0
    close_pipes(process)


@asynccontextmanager
async def dialled(url: str, decide: Decide = ALLOW) -> AsyncIterator[Connected]:
    """Connects to a server over WebSocket, as the SDK does."""
    client = Recorder(decide)
    transport = await create_websocket_stream(url)
    async with (
        connect_to_agent(cast(Client, client), transport, use_unstable_protocol=True) as agent,
        asyncio.timeout(PATIENCE),
    ):
        yield await greet(agent, client)


def close_pipes(process: asyncio.subprocess.Process) -> None:
    """The SDK leaves the transport to the garbage collector, which complains of it."""
    process._transport.close()  # type: ignore[attr-defined]


__all__ = ["ALLOW", "Connected", "Recorder", "RequestError", "cancelled", "dialled", "greet", "pick", "spawned"]
