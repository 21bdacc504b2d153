"""The demo: an agent and a small client play against each other in one process, over the real message path.

The agent is a `Host` with `acp.stdio` on two socket pairs in the place of pipes; the client sees nothing but lines.
Here is the course of events: what the client does next, how long it waits, and when all is over.
"""

from __future__ import annotations

import io
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from typing import Any

import trio

# Public under trio.testing only, which is slow to import.
from trio._core import wait_all_tasks_blocked  # type: ignore[attr-defined]

from mockagent import __version__
from mockagent.acp.stdio import serve_stdio
from mockagent.demo.client import AgentError, Client, Gone, Waiting
from mockagent.demo.course import aftermath, longest_wait, prompts
from mockagent.demo.lines import brief, items
from mockagent.demo.screen import Screen
from mockagent.demo.user import CAPABILITIES, User
from mockagent.demo.view import View
from mockagent.host import Host, Options
from mockagent.jsonrpc.messages import Notification
from mockagent.scenario import model
from mockagent.script.driver import drive

PATIENCE = 4.0
"""Seconds without a message, beyond the waits that the scenario has, after which the client cancels."""

TURN = 30.0
"""Seconds that a turn may take, however much arrives."""

TOTAL = 60.0
"""Seconds that the whole show may take."""

PAGES = 3
"""Pages of the list of sessions that are asked for."""

_AUTH_REQUIRED = -32000
_STDERR_LIMIT = 2000


class Silent(Exception):
    """The agent did not answer in time."""


def run_demo(scenario: model.Scenario, *, speed: float | None, seed: int | None, prompt: str | None) -> int:
    """Plays agent and client against each other on standard output; ends by itself.

    Args:
        scenario: the agent.
        speed: divides all waits, the client's too; 0 waits for nothing; None is the scenario's own speed.
        seed: in place of the scenario's.
        prompt: the only thing the user says; None: what the scenario's turns answer.

    Returns:
        Exit status: 0 whatever the agent did, 130 after Ctrl-C, 143 after SIGTERM.
    """

    async def main() -> int:
        screen = Screen.standard()
        status = 0
        async with trio.open_nursery() as nursery:
            screen.when_left(nursery.cancel_scope.cancel)

            def interrupted(number: int) -> None:
                nonlocal status
                status = 128 + number
                nursery.cancel_scope.cancel()

            await nursery.start(_signals, interrupted)
            await play(scenario, screen, speed=speed, seed=seed, prompt=prompt)
            nursery.cancel_scope.cancel()
        return status

    return trio.run(main)


async def _signals(
    interrupted: Callable[[int], None], task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as arrived:
        task_status.started()
        async for number in arrived:
            interrupted(number)


async def play(
    scenario: model.Scenario, screen: Screen, *, speed: float | None, seed: int | None, prompt: str | None
) -> None:
    """The same on any screen, inside a trio run.

    Args:
        scenario, speed, seed, prompt: as for `run_demo`.
        screen: where to.
    """
    view = View(screen)
    with screen, redirect_stderr(_Stderr(view.stderr)):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(screen.run)
            view.scenario(scenario)
            with trio.move_on_after(TOTAL) as bound:
                await _meet(scenario, view, Options(speed=speed, seed=seed), prompt)
            if bound.cancelled_caught:
                view.client_did(f"stops here: {TOTAL:.0f} seconds are over")
            view.close()
            nursery.cancel_scope.cancel()


async def _meet(scenario: model.Scenario, view: View, options: Options, prompt: str | None) -> None:
    """Connects the two, and lets the client run its course."""
    pace = options.speed if options.speed is not None else scenario.clock.speed
    with _pipe() as (to_agent, from_client), _pipe() as (to_client, from_agent):
        async with trio.open_nursery() as nursery:
            agent = _Process(scenario, options)
            nursery.start_soon(agent.run, from_client, to_client)
            course = Course(scenario, view, from_agent, to_agent, pace)
            nursery.start_soon(course.client.run)
            try:
                await course.run([prompt] if prompt is not None else prompts(scenario))
            except Gone:
                view.alarm(agent.farewell())
            except Silent as silent:
                view.alarm(str(silent))
            nursery.cancel_scope.cancel()


@contextmanager
def _pipe() -> Iterator[tuple[trio.SocketStream, trio.SocketStream]]:
    """One direction of a connection, in two streams: the end that is written to, and the end that is read from."""
    write, read = (trio.SocketStream(trio.socket.from_stdlib_socket(end)) for end in socket.socketpair())
    try:
        yield write, read
    finally:
        write.socket.close()
        read.socket.close()


class _Stderr(io.TextIOBase):
    """Takes what the agent writes to standard error; a flood is cut."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._left = _STDERR_LIMIT

    def write(self, text: str) -> int:
        if self._left > 0 and text.strip():
            shown = text.strip("\n")[: self._left]
            self._left -= len(shown)
            self._show(shown if self._left > 0 else f"{shown}…")
        return len(text)


class _Process:
    """The agent, as much as it can be one inside of this process: it can end without taking the show with it."""

    def __init__(self, scenario: model.Scenario, options: Options) -> None:
        self._host = Host([scenario], options)
        self._host.backstage.exit = self._exit
        self._scope = trio.CancelScope()
        self._code: int | None = None

    async def run(self, receive: trio.SocketStream, send: trio.SocketStream) -> None:
        """Plays until the client leaves, or the scenario ends the process."""
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(drive, self._host.stage)
                    self._host.backstage.tasks = nursery
                    self._host.backstage.start()
                    await serve_stdio(self._host.backstage, self._host.agents[0], receive, send)
                    nursery.cancel_scope.cancel()
        finally:
            receive.socket.close()
            send.socket.close()

    def _exit(self, code: int) -> None:
        self._code = code
        self._scope.cancel()

    def farewell(self) -> str:
        """Why there is no connection any more."""
        if self._code is None:
            return "the agent has closed the connection"
        if self._code < 0:
            return f"the agent was killed by {signal.Signals(-self._code).name}"
        return f"the agent has ended with exit status {self._code}"


class Course:
    """What the client does, from `initialize` to the end.

    Args:
        scenario: read for how patient to be, never for what to show.
        view: shows it.
        receive, send: the connection.
        pace: by which the client's own waits are divided; 0: none.
    """

    def __init__(
        self,
        scenario: model.Scenario,
        view: View,
        receive: trio.abc.ReceiveStream,
        send: trio.abc.SendStream,
        pace: float,
    ) -> None:
        self._scenario = scenario
        self._view = view
        self._pace = pace
        self._user = User(view, self._sleep)
        self.client = Client(receive, send, noted=self._noted, asked=self._user.answer, puzzled=view.puzzled)
        logical = longest_wait(scenario) / pace if pace else 0.0
        self._patience = (PATIENCE if pace else 1.0) + min(logical, TURN)
        self._methods: list[dict[str, Any]] = []

    async def run(self, prompts: list[str]) -> None:
        """Plays all of it.

        Raises:
            Gone: the agent has ended the connection.
            Silent: the agent does not answer what nothing can go on without.
        """
        try:
            can = await self._initialize()
            if "list" in can:
                await self._list()
            session = await self._new_session()
        except AgentError as refused:
            self._view.failed("the agent refuses", refused.error)
            return
        for prompt in prompts:
            await self._turn(session, prompt)
        await self._linger()

    # --- setting up

    async def _initialize(self) -> dict[str, Any]:
        """Returns what the agent can do with sessions."""
        params = {
            "protocolVersion": 1,
            "clientCapabilities": CAPABILITIES,
            "clientInfo": {"name": "mockagent-demo", "title": "mockagent demo", "version": __version__},
        }
        result = _mapping(await self._call("initialize", params, lambda result: self._view.connected(_mapping(result))))
        self._methods = items(result.get("authMethods"))
        return _mapping(_mapping(result.get("agentCapabilities")).get("sessionCapabilities"))

    async def _list(self) -> None:
        rows: list[dict[str, Any]] = []
        cursor: Any = None
        try:
            for _ in range(PAGES):
                params = {} if cursor is None else {"cursor": cursor}
                page = _mapping(await self._call("session/list", params))
                rows += items(page.get("sessions"))
                cursor = page.get("nextCursor")
                if cursor is None:
                    break
        except (AgentError, Silent) as error:
            if isinstance(error, AgentError):
                self._view.failed("session/list", error.error)
            else:
                self._view.alarm(str(error))
        self._view.sessions(rows, cursor is not None)

    async def _new_session(self) -> str:
        cwd = self._scenario.sessions.cwd
        params = {"cwd": cwd if cwd.startswith("/") else "/home/dev/project", "mcpServers": []}
        try:
            return await self._open(params)
        except AgentError as refused:
            if refused.error.get("code") != _AUTH_REQUIRED or not self._methods:
                raise
            self._view.failed("session/new", refused.error)
        method = self._methods[0]
        self._view.client_did(f"authenticates: {brief(method.get('name', method.get('id')), 60)}")
        await self._call("authenticate", {"methodId": method.get("id")})
        return await self._open(params)

    async def _open(self, params: dict[str, Any]) -> str:
        def opened(result: Any) -> None:
            state = _mapping(result)
            self._view.opened(str(state.get("sessionId")), state)

        return str(_mapping(await self._call("session/new", params, opened)).get("sessionId"))

    async def _call(self, method: str, params: Any, then: Callable[[Any], None] | None = None) -> Any:
        """Asks, and waits for the answer. Raises AgentError, Gone, Silent."""
        waiting = await self.client.ask(method, params, then)
        if not await self._answered(waiting, TURN):
            raise Silent(f"no answer to {method}: the client gives up")
        return waiting.value()

    # --- turns

    async def _turn(self, session: str, prompt: str) -> None:
        await self._type(prompt)
        self._view.prompt(prompt)
        params = {"sessionId": session, "prompt": [{"type": "text", "text": prompt}]}
        waiting = await self.client.ask("session/prompt", params, self._view.ended)
        if not await self._answered(waiting, TURN):
            await self._cancel(session, waiting)
        try:
            waiting.value()
        except AgentError as refused:
            self._view.failed("session/prompt", refused.error)

    async def _cancel(self, session: str, waiting: Waiting) -> None:
        quiet = trio.current_time() - self.client.heard >= self._patience
        why = f"nothing for {self._patience:.0f} seconds" if quiet else f"{TURN:.0f} seconds are enough"
        self._view.client_did(f"cancels the turn ({why})")
        await self.client.notify("session/cancel", {"sessionId": session})
        self._user.stop()
        if not await self._answered(waiting, PATIENCE):
            raise Silent("no answer to the prompt, not even after session/cancel: the client gives up")

    async def _answered(self, waiting: Waiting, limit: float) -> bool:
        """Waits for an answer; False if nothing at all has arrived for a while, or too much for too long."""
        bound = trio.current_time() + limit
        while not waiting.settled.is_set():
            until = min(self.client.heard + self._patience, bound)
            if trio.current_time() >= until:
                return False
            with trio.move_on_at(until):
                await waiting.settled.wait()
        return True

    async def _linger(self) -> None:
        """What comes after the reply is a part of the show."""
        with trio.move_on_after(1.0 + min(aftermath(self._scenario), 10.0) / self._pace if self._pace else TURN):
            if not self._pace:
                await wait_all_tasks_blocked(0.05)
                return
            await self.client.ended.wait()
            raise Gone

    async def _type(self, text: str) -> None:
        """As fast as people do, and no longer than a second and a half."""
        for length in range(len(text) if self._pace else 0):
            self._view.typing(text[:length])
            await self._sleep(min(0.04, 1.5 / len(text)))
        self._view.typing(None)

    async def _sleep(self, seconds: float) -> None:
        if self._pace:
            await trio.sleep(seconds / self._pace)
        else:
            await trio.lowlevel.checkpoint()

    def _noted(self, message: Notification) -> None:
        self._view.notified(message.method, message.params)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
