"""`MockAgent`: a mock in a thread of its own, for tests in any framework.

Every method may be called from any thread, and returns when what it asks for has happened, in every process that
belongs to the object. What it does is `control.troupe`'s; here it only gets there and back.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import trio

import mockagent
from mockagent.control.spec import scenario_of
from mockagent.host import Host, Options
from mockagent.scenario import model
from mockagent.scenario.problems import check_names
from mockagent.script.driver import drive
from mockagent.testing import values
from mockagent.testing.errors import MockError, raise_bugs
from mockagent.testing.journal import Journal
from mockagent.testing.loops import awaited, in_event_loop
from mockagent.testing.values import UNSET
from mockagent.watch.entries import Entry
from mockagent.watch.memory import Memory

if TYPE_CHECKING:
    from types import TracebackType

    from mockagent.control.troupe import Troupe
    from mockagent.site import Site
    from mockagent.testing.memory import MemoryAgent

Given = str | os.PathLike[str] | Mapping[str, Any] | model.Scenario
"""Name of a bundled scenario, path of a file, YAML text, the same as a mapping, or a scenario."""

T = TypeVar("T")

STARTING = 30.0
"""Seconds in which the thread has to be up."""

HOST = "127.0.0.1"


def _checked(chaos: str | None) -> str | None:
    """Raises ValueError."""
    if chaos is not None:
        from mockagent.faults.chaos import parse

        parse(chaos)
    return chaos


class MockAgent:
    """A mock agent for one test: a context manager, sync or async (asyncio and trio).

    Args:
        scenario: what to play: the name of a bundled scenario, the path of a file, YAML text (it has a line break, or
            begins with a brace), or the same as a mapping.
        scenarios: further agents, for clients that connect over the network.
        seed: in place of the scenario's.
        speed: divides all waits, in place of the scenario's; 0: nothing is waited for.
        journal: file for the journal; it is kept in memory anyway.
        allow: ids of rules that the client may break, or globs.
        allow_origins: origins, beside loopback's, whose pages may connect.
        chaos: faults drawn by chance, as for `--chaos`: `0.05`, `0.05:order,wire`.

    Raises:
        TypeError, ValueError: `seed` or `speed` is no number that can be played with.
        ValueError: `chaos` cannot be read.
        ScenarioError: there is no such scenario, or it has mistakes; the text names all of them. Or two have one name.
    """

    def __init__(
        self,
        scenario: Given = "demo",
        *,
        scenarios: Sequence[Given] = (),
        seed: int | None = None,
        speed: float | None = None,
        journal: str | os.PathLike[str] | None = None,
        allow: Sequence[str] = (),
        allow_origins: Sequence[str] = (),
        chaos: str | None = None,
    ) -> None:
        values.check_pace(seed, speed)
        self._scenarios = [scenario_of(given) for given in (scenario, *values.several(scenarios))]
        check_names(self._scenarios)
        path = None if journal is None else os.fspath(journal)
        self._options = Options(
            seed=seed, speed=speed, journal=path, allow=values.several(allow), chaos=_checked(chaos)
        )
        self._origins = values.several(allow_origins)
        self._thread: threading.Thread | None = None
        self._up: Future[None] = Future()
        self._down: Future[None] = Future()
        self._crash: BaseException | None = None
        self._token: trio.lowlevel.TrioToken
        self._nursery: trio.Nursery
        self._troupe: Troupe
        self._site: Site | None = None
        self._stop: trio.Event
        self._again: trio.Event
        self._link = ""
        self._port = 0

    def __repr__(self) -> str:
        return f"<MockAgent {', '.join(scenario.name for scenario in self._scenarios)}>"

    # --- where it is

    @property
    def stdio_command(self) -> list[str]:
        """The command, with its arguments, that a client starts to talk ACP over stdio. It needs no environment; it may
        be started several times, also at once, and all those processes are this mock."""
        self._running()
        if not sys.executable:
            raise MockError("this Python does not know its own path, so no client can start it")
        command = os.path.join(os.path.dirname(os.path.abspath(mockagent.__file__)), "__main__.py")
        return [sys.executable, command, "acp", "--link", self._link]

    @property
    def acp_url(self) -> str:
        """ACP over Streamable HTTP."""
        return f"{self.url}/acp"

    @property
    def acp_ws_url(self) -> str:
        """ACP over WebSocket."""
        return f"ws://{HOST}:{self._port}/acp"

    @property
    def aap_url(self) -> str:
        """Base of AAP."""
        return f"{self.url}/aap"

    @property
    def control_url(self) -> str:
        """Base of control over HTTP, for parts of a test that are not in Python."""
        return f"{self.url}/_mock"

    @property
    def url(self) -> str:
        """Where it listens."""
        self._running()
        return f"http://{HOST}:{self._port}"

    # --- telling

    def push(self, session: str, *, title: Any = UNSET, meta: Any = UNSET, steps: Sequence[Any] = ()) -> None:
        """Plays something in a session now, to whoever has it open.

        Args:
            session: its id.
            title: a new title; None clears it.
            meta: merged into the session's; None clears it.
            steps: as in a scenario: `[{"say": "Hello"}]`.

        Raises:
            LookupError: there is no such session; the text names those that are there.
            ValueError: the steps have mistakes.
        """
        self._call(self._troupe_.push, session, values.pushed(title, meta, steps))

    def fault(
        self, at: str, *, when: Mapping[str, Any] | None = None, save: Mapping[str, str] | None = None, **effects: Any
    ) -> Armed:
        """Arms a fault, behind all others, as an entry of `faults` in a scenario would: in every process of this mock,
        and in those that start later, before they read anything. What it counts goes on when a client starts the agent
        again.

        Args:
            at: what it is about, such as `list` or `reply:session/prompt`.
            when: only if this holds.
            save: keeps parts of the message.
            effects: what happens, such as `error="invalid_cursor"` or `exit=1`.

        Raises:
            ValueError: it has mistakes; the text names all of them.
        """
        made = values.fault(at, when, save, effects, 1)
        return Armed(self, self._call(self._troupe_.arm, made))

    def clear_faults(self) -> None:
        """Takes out every fault that `fault` has armed; those of the scenario stay."""
        self._call(self._troupe_.disarm, None)

    def advance(self, seconds: float) -> None:
        """Moves the scenario's time on; all that becomes due on the way happens, in order, before this returns.

        Raises:
            ValueError: time does not go back.
        """
        self._call(self._troupe_.advance, seconds)

    def reset(self, scenario: Given | None = None) -> None:
        """Everything as it was at the start: sessions, turns, counts, faults, clock, journal, verdict.

        Clients that are connected over the network are disconnected; over stdio they stay, with no session open. A mock
        that a fault has made exit is there again, under the same addresses.

        Args:
            scenario: is played from now on; it takes the place of the first.

        Raises:
            ScenarioError: there is no such scenario, or it has mistakes, or another agent has its name.
        """
        made = None if scenario is None else scenario_of(scenario)
        self._call(self._reset, made)

    async def _reset(self, scenario: model.Scenario | None) -> None:
        await self._troupe.reset(scenario)
        if scenario is not None:
            self._scenarios[0] = scenario
        self._again.set()
        while self._site is None:
            await trio.lowlevel.checkpoint()

    # --- asking

    @property
    def journal(self) -> Journal:
        """Everything that happened, in every process, up to the moment at which it is asked."""
        return Journal(self)

    @property
    def sessions(self) -> list[dict[str, Any]]:
        """All sessions, with `id`, `title`, `state`, ..., the last active first."""
        rows: list[dict[str, Any]] = self._call(self._troupe_.sessions)
        return rows

    def wait_for(self, method: str, timeout: float = 5.0, since: int = 0) -> Entry:
        """Waits until the client has sent a message of a kind, or an event of that name has happened, and returns the
        first of them. In an async test use `await mock.until(...)`.

        Args:
            method: `session/cancel`, `answer:session/request_permission`, `GET /sessions`, a neutral kind such as
                `turn`, a glob, or the name of an event such as `closed`.
            timeout: seconds.
            since: number of a line of the journal; earlier ones do not count (`mock.journal.last`).

        Raises:
            TimeoutError: nothing came; the text says what did.
            MockError: waiting here would stop the event loop in which the client runs.
        """
        self._sync()
        if in_event_loop():
            try:
                return self._memory.wait_for(method, 0, since)
            except TimeoutError:
                raise MockError(
                    f"wait_for({method!r}) would stop the event loop that this test runs in; "
                    f"write `await mock.until({method!r}, timeout={timeout:g})`"
                ) from None
        return self._memory.wait_for(method, timeout, since)

    async def until(self, method: str, timeout: float = 5.0, since: int = 0) -> Entry:  # noqa: ASYNC109
        """`wait_for` in asyncio and trio."""
        entry: Entry = await awaited(self._submit(self._troupe_.wait_for, method, timeout, since))
        return entry

    def report(self) -> dict[str, Any]:
        """The verdict on the client: `failed`, `rules`, `breaches`, `expectations`, `faults`, and `text` for people."""
        self._sync()
        report = self._troupe.host.report
        return report.as_json() | {"text": report.text()}

    def verify(self) -> None:
        """Checks that the client has kept every rule and met every expectation so far.

        Raises:
            AssertionError: it has not; the text says what it did wrong, with the messages that show it.
            MockError: the mock itself has made a mistake.
        """
        self._sync()
        raise_bugs(self._memory)
        self._troupe.host.report.verify()

    # --- life

    def in_memory(self) -> MemoryAgent:
        """The same mock in the test's own trio run, sharing its clock: `async with mock.in_memory() as mock`."""
        from mockagent.testing.memory import MemoryAgent

        return MemoryAgent(self._scenarios, self._options)

    def __enter__(self) -> MockAgent:
        self._start()
        try:
            self._up.result(STARTING)
        except BaseException:
            self._finish()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._finish()
        self._surface(error)

    async def __aenter__(self) -> MockAgent:
        self._start()
        try:
            await awaited(self._up)
        except BaseException:
            self._finish()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()
        await awaited(self._down)
        self._finish()
        self._surface(error)

    def _start(self) -> None:
        if self._thread is not None:
            raise MockError("this MockAgent has been used; make a new one")
        self._thread = threading.Thread(target=self._body, name="mockagent", daemon=True)
        self._thread.start()

    def _end(self) -> None:
        if self._up.done() and self._up.exception() is None:
            with suppress(trio.RunFinishedError):
                self._token.run_sync_soon(self._stop.set)

    def _finish(self) -> None:
        """Returns when the thread, its sockets and its processes are gone."""
        self._end()
        assert self._thread is not None
        self._thread.join(STARTING)
        if self._thread.is_alive():
            raise MockError("the mock does not end")

    def _surface(self, error: BaseException | None) -> None:
        """What has broken the mock is told, unless the test has something to tell by itself."""
        if error is None:
            self._alive()

    def _alive(self) -> None:
        if self._crash is not None:
            raise MockError(f"the mock has crashed: {self._crash!r}") from self._crash

    def _running(self) -> None:
        self._alive()
        if not self._up.done():
            raise MockError("the mock is not running: use it as a context manager, `with MockAgent(...) as mock:`")

    # --- in the thread

    def _body(self) -> None:
        try:
            trio.run(self._main)
        except BaseException as error:
            self._crash = error
            if not self._up.done():
                self._up.set_exception(error)
        finally:
            self._down.set_result(None)

    async def _main(self) -> None:
        from mockagent.control.troupe import Troupe, listen

        self._token = trio.lowlevel.current_trio_token()
        self._stop, self._again = trio.Event(), trio.Event()
        host = Host(self._scenarios, self._options, armed=True, exit=self._exit)
        options = self._options
        self._troupe = Troupe(host, {"seed": options.seed, "speed": options.speed, "chaos": options.chaos})
        async with trio.open_nursery() as self._nursery:
            self._nursery.start_soon(drive, host.stage)
            host.backstage.tasks = self._nursery
            self._link = await self._nursery.start(listen, self._troupe)
            await self._nursery.start(self._serve)
            host.backstage.start()
            self._up.set_result(None)
            await self._stop.wait()
            await self._troupe.end()
            self._nursery.cancel_scope.cancel()
        host.close()

    async def _serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serves the network, and again after each reset that follows an `exit`."""
        from mockagent.control.service import PREFIX, Control
        from mockagent.site import Settings, Site
        from mockagent.wire.gate import Gate

        control = Control(self._troupe, gate=Gate(HOST, self._origins))
        while True:
            settings = Settings(host=HOST, port=self._port, allow_origins=self._origins)
            site = Site(self._troupe.host.backstage, settings, [(PREFIX, control.handle)])
            async with trio.open_nursery() as nursery:
                self._port = await nursery.start(site.run)
                self._site = site
                task_status.started()
                task_status = trio.TASK_STATUS_IGNORED
            self._site = None
            self._again = trio.Event()
            await self._again.wait()

    def _exit(self, code: int) -> None:
        """In place of the end of the process: every connection over the network is reset, and nobody listens."""
        self._troupe.host.taps.note("exit", code=code)
        if self._site is not None:
            self._site.abort()

    # --- there and back

    @property
    def _troupe_(self) -> Troupe:
        self._running()
        return self._troupe

    @property
    def _memory(self) -> Memory:
        return self._troupe_.memory

    def _sync(self) -> None:
        """What has happened is in the journal; of a mock that has ended it is already."""
        self._running()
        if not self._down.done():
            self._call(self._troupe.sync)

    def _call(self, work: Callable[..., Awaitable[T]], *arguments: Any) -> T:
        return self._submit(work, *arguments).result()

    def _submit(self, work: Callable[..., Awaitable[T]], *arguments: Any) -> Future[T]:
        """Has something done in the mock's thread."""
        self._running()
        if self._thread is threading.current_thread():
            raise MockError("this is the mock's own thread; it cannot wait for itself")
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()
        try:
            self._token.run_sync_soon(partial(self._begin, future, partial(work, *arguments)))
        except trio.RunFinishedError:
            raise MockError("the mock has ended") from None
        return future

    def _begin(self, future: Future[T], work: Callable[[], Awaitable[T]]) -> None:
        try:
            self._nursery.start_soon(_settle, future, work)
        except RuntimeError:
            future.set_exception(MockError("the mock has ended"))


async def _settle(future: Future[T], work: Callable[[], Awaitable[T]]) -> None:
    try:
        future.set_result(await work())
    except Exception as error:
        future.set_exception(error)
    except BaseException:
        future.set_exception(MockError("the mock has ended"))
        raise


class Armed:
    """A fault that a test has armed.

    Attributes:
        id: its name in the control API.
    """

    def __init__(self, mock: MockAgent, id: str) -> None:
        self.id = id
        self._mock = mock

    def clear(self) -> None:
        """Takes it out again; doing it twice is harmless."""
        self._mock._call(self._mock._troupe_.disarm, self.id)
