"""A program in the client's terminal: one step of a scenario, five kinds of request.

Created, waited for (killed when it takes too long), read and released, whatever happens in between: a terminal that the
client has set up is always released. Nothing here waits; each answer leads to the next request.

Source: ACP v1, "Terminals", "Building a Timeout"; "Prompt Turn", cancellation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mockagent.acp.paths import absolute
from mockagent.acp.requests import Where, error_answer, need_of, path_in
from mockagent.jsonrpc.correlation import Lost
from mockagent.jsonrpc.messages import Response
from mockagent.message import Origin
from mockagent.scenario import model
from mockagent.script.output import Answer, ClientRequest
from mockagent.script.stage import Timer
from mockagent.world.clock import SECOND

if TYPE_CHECKING:
    from mockagent.acp.connection import Connection

EXIT_GRACE = 2.0
"""Seconds (real time) in which a program that was killed should have ended; then its output is read all the same."""


def create_params(step: model.Terminal, where: Where) -> dict[str, Any]:
    """Params of `terminal/create`.

    Raises:
        CannotAsk: the client has no terminals, or the folder is outside of the session's.
    """
    need_of(where.client.terminal, "terminal")
    params: dict[str, Any] = {"sessionId": where.session.id, "command": step.command}
    if step.args:
        params["args"] = list(step.args)
    if step.env:
        params["env"] = [{"name": name, "value": value} for name, value in step.env.items()]
    params["cwd"] = absolute(where.session.cwd, "/") if step.cwd is None else path_in(where, step.cwd)
    if step.limit is not None:
        params["outputByteLimit"] = step.limit
    return params


class TerminalWork:
    """One terminal, from its creation to its release.

    Args:
        connection: whose client has the terminal.
        session: id of the session.
        need: what the script wants; its payload says when to kill.
        settle: gets the outcome once the terminal is released: the answer to `terminal/output`, with the exit status.
        origin: who caused it.
    """

    def __init__(
        self,
        connection: Connection,
        session: str,
        need: ClientRequest,
        settle: Callable[[Answer], None],
        origin: Origin,
    ) -> None:
        self._connection = connection
        self._session = session
        self._need = need
        self._settle = settle
        self._origin: Origin = origin
        self._terminal: str | None = None
        self._open: dict[str, int] = {}  # method to id of the request that is not answered
        self._exit: dict[str, Any] | None = None
        self._answer: Answer | None = None
        self._failed: Answer | None = None
        self._killed = False
        self._unwanted = False
        self._timer: Timer | None = None

    def begin(self, params: dict[str, Any]) -> None:
        """Asks for the terminal."""
        self._ask("create", params, self._created)

    def withdraw(self) -> None:
        """The outcome is not wanted any more: the program is killed and the terminal released, then it is settled."""
        if self._unwanted:
            return
        self._unwanted = True
        self._no_timer()
        if self._terminal is None:
            self._take_back("create")
        elif self._answer is None and "release" not in self._open:
            if self._exit is None and not self._killed:
                self._do("kill", self._ignore)
            self._release()

    # --- one request after the other

    def _ask(self, what: str, params: dict[str, Any], then: Callable[[Response], None]) -> None:
        method = f"terminal/{what}"

        def answered(response: Response | Lost) -> None:
            self._open.pop(what, None)
            if isinstance(response, Lost):
                self._end(Answer(outcome="error", value={"message": response.reason}, words=response.reason))
            else:
                then(response)

        self._open[what] = self._connection.request(
            method, params, answered, session=self._session, origin=self._origin
        )

    def _do(self, what: str, then: Callable[[Response], None]) -> None:
        self._ask(what, {"sessionId": self._session, "terminalId": self._terminal}, then)

    def _created(self, response: Response) -> None:
        terminal = response.result.get("terminalId") if isinstance(response.result, dict) else None
        if not isinstance(terminal, str):
            self._end(_failure(response))
            return
        self._terminal = terminal
        if self._unwanted:
            self._release()
            return
        self._do("wait_for_exit", self._exited)
        if self._need.begun is not None:
            self._need.begun(terminal)
        kill_after = self._need.payload.kill_after
        if kill_after is not None and "wait_for_exit" in self._open:
            self._timer = self._connection.backstage.stage.timeout(kill_after / SECOND, self._kill)

    def _exited(self, response: Response) -> None:
        self._no_timer()
        self._exit = response.result if isinstance(response.result, dict) else {}
        if response.error is not None:
            self._failed = error_answer(response.error, response.data)
        if self._unwanted:
            self._end_if_released()
        elif "kill" not in self._open:
            self._read()

    def _kill(self) -> None:
        self._killed = True
        self._do("kill", self._was_killed)

    def _was_killed(self, response: Response) -> None:
        if self._unwanted:
            return
        if self._exit is not None:
            self._read()
        else:
            self._timer = self._connection.backstage.stage.timeout(EXIT_GRACE, self._read)

    def _read(self) -> None:
        self._no_timer()
        if not self._unwanted:
            self._do("output", self._was_read)

    def _was_read(self, response: Response) -> None:
        result = response.result if isinstance(response.result, dict) else None
        if response.error is not None or result is None or not isinstance(result.get("output"), str):
            self._failed = self._failed or _failure(response)
        else:
            result.setdefault("exitStatus", self._exit)
            outcome: Any = "timeout" if self._killed else "result"
            self._answer = Answer(outcome=outcome, value=result, words=result["output"], message=response.data)
        if "release" not in self._open:
            self._release()

    def _release(self) -> None:
        self._do("release", self._was_released)

    def _was_released(self, response: Response) -> None:
        self._terminal = None
        self._end_if_released()

    def _end_if_released(self) -> None:
        """By then the program has ended; a client that does not say so is told that it need not any more."""
        if self._terminal is not None or "release" in self._open:
            return
        self._take_back("wait_for_exit")
        self._end(Answer(outcome="cancelled") if self._unwanted else self._failed or self._answer or _NOTHING)

    def _ignore(self, response: Response) -> None:
        """Whether the kill succeeded makes no difference: the release that follows does the same."""

    def _take_back(self, what: str) -> None:
        id = self._open.get(what)
        if id is not None:
            self._connection.take_back(id, self._session)

    def _no_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self, answer: Answer) -> None:
        self._no_timer()
        self._settle(answer)


_NOTHING = Answer(outcome="error", words="the terminal told nothing")


def _failure(response: Response) -> Answer:
    if response.error is not None:
        return error_answer(response.error, response.data)
    return Answer(outcome="error", value=response.result, message=response.data)
