"""`MemoryAgent`: a mock in the test's own trio run, without processes, threads or sockets.

It shares the clock of the run: with pytest-trio's `autojump_clock`, waits of an hour take no time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import trio

from mockagent.control.desk import Desk
from mockagent.control.spec import scenario_of
from mockagent.host import Host, Options
from mockagent.scenario import model
from mockagent.script.driver import drive
from mockagent.testing import values
from mockagent.testing.errors import raise_bugs
from mockagent.testing.values import UNSET
from mockagent.watch.entries import Entry
from mockagent.watch.memory import Memory

if TYPE_CHECKING:
    from types import TracebackType

    from trio.testing import MemoryReceiveStream, MemorySendStream

    from mockagent.testing.agent import Given

    Streams = trio.StapledStream[MemorySendStream, MemoryReceiveStream]


class MemoryAgent:
    """A mock agent in memory. Make it with `MockAgent(...).in_memory()`; an async context manager.

    Args:
        scenarios: what to play; clients connect to the first.
        options: as of a host.
    """

    def __init__(self, scenarios: Sequence[model.Scenario], options: Options) -> None:
        self._scenarios = list(scenarios)
        self._options = options
        self._stack = AsyncExitStack()
        self._host: Host
        self._desk: Desk
        self._nursery: trio.Nursery
        self._streams: list[Streams] = []

    async def __aenter__(self) -> MemoryAgent:
        self._host = Host(self._scenarios, self._options, armed=True, exit=self._exit)
        self._desk = Desk(self._host)
        self._nursery = await self._stack.enter_async_context(trio.open_nursery())
        self._nursery.start_soon(drive, self._host.stage)
        self._host.backstage.tasks = self._nursery
        self._host.backstage.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._nursery.cancel_scope.cancel()
        try:
            return await self._stack.__aexit__(kind, error, trace)
        except BaseExceptionGroup as group:
            if error is None or group.exceptions != (error,):
                raise
            return False  # what the test raised is the test's own, and not one of several
        finally:
            self._host.close()

    def connect(self) -> Streams:
        """A new client's end of a connection: what it sends the agent reads, one JSON text a line, and the other way
        round. Closing it is what EOF is for an agent over stdio."""
        from trio.testing import memory_stream_pair

        from mockagent.acp.stdio import serve_stdio

        ours, theirs = memory_stream_pair()

        async def play() -> None:
            await serve_stdio(self._host.backstage, self._host.agents[0], theirs.receive_stream, theirs.send_stream)
            await theirs.aclose()
            self._host.stage.hurried = False  # the process lives on

        self._streams.append(theirs)
        self._nursery.start_soon(play)
        return ours

    def _exit(self, code: int) -> None:
        """In place of the end of the process: every connection breaks."""
        self._host.taps.note("exit", code=code)
        for stream in self._streams:
            stream.send_stream.close()
            stream.receive_stream.close()

    # --- telling and asking; see `MockAgent`

    def push(self, session: str, *, title: Any = UNSET, meta: Any = UNSET, steps: Sequence[Any] = ()) -> None:
        """See `MockAgent.push`."""
        if not self._desk.push_here(session, values.pushed(title, meta, steps)):
            there = ", ".join(agent_session["id"] for agent_session in self.sessions) or "none yet"
            raise LookupError(f"there is no session {session!r}; there are: {there}")

    def fault(
        self, at: str, *, when: Mapping[str, Any] | None = None, save: Mapping[str, str] | None = None, **effects: Any
    ) -> str:
        """See `MockAgent.fault`; returns the fault's id, for `clear_faults`."""
        return self._host.arm(values.fault(at, when, save, effects, 1))

    def clear_faults(self, id: str | None = None) -> None:
        """Takes out a fault that `fault` has armed, or all of them."""
        self._host.disarm(id)

    def advance(self, seconds: float) -> None:
        """See `MockAgent.advance`."""
        self._desk.advance_here(seconds)

    async def reset(self, scenario: Given | None = None) -> None:
        """See `MockAgent.reset`; connections stay, with no session open."""
        await self._desk.reset(None if scenario is None else scenario_of(scenario))

    @property
    def sessions(self) -> list[dict[str, Any]]:
        """See `MockAgent.sessions`."""
        return self._desk.rows()

    @property
    def journal(self) -> Memory:
        """Everything that happened."""
        return self._desk.memory

    async def wait_for(self, method: str, timeout: float = 5.0, since: int = 0) -> Entry:  # noqa: ASYNC109
        """See `MockAgent.wait_for`; the seconds are those of the run's clock."""
        return await self._desk.wait_for(method, timeout, since)

    def report(self) -> dict[str, Any]:
        """See `MockAgent.report`."""
        return self._host.report.as_json() | {"text": self._host.report.text()}

    def verify(self) -> None:
        """See `MockAgent.verify`."""
        raise_bugs(self._desk.memory)
        self._host.report.verify()
