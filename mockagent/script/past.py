"""What a turn got from outside, in order, so that it can be played again up to where it waits for the client.

A turn of AAP may be parked when the process ends. What it said is in the history; where it stood in its steps is not.
So its past is written down: the prompt, the outcome of every condition, how each tool was admitted, and the answers. In
another process the steps play again in silence, with that past in the place of chance and client, and waits that take
no time but keep their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

import msgspec

from mockagent.message import Origin, Peer
from mockagent.scenario.model import Micros
from mockagent.script.output import Admission, Answer, Fail, Item, Need, Output, Stop, Ticket, ToolCall
from mockagent.script.placeholders import Scope

if TYPE_CHECKING:
    from mockagent.script.agent import Agent
    from mockagent.script.run import Run
    from mockagent.world.session import Session

_MOST = 10_000  # outcomes that are remembered; a turn that is longer cannot be written down


class Written(msgspec.Struct, kw_only=True):
    """A past as it is kept.

    Attributes:
        number: of the turn in its session.
        turn: which of the scenario's turns.
        prompt, message, facts, groups: as in `Scope` and `Run`.
        messages, calls: the session's counts when the turn began.
        told: outcomes, in order.
        rounds: answers, by the request that brought them: the how-manieth question, and the answer.
    """

    number: int
    turn: int
    prompt: str
    message: Any
    facts: dict[str, Any]
    groups: dict[str, str | None]
    messages: int
    calls: int
    told: list[Any] = []
    rounds: list[list[tuple[int, Answer]]] = []


class Past:
    """The past of one run.

    Args:
        begun: how it began; the lists in it grow.

    Attributes:
        silent: it is being played again.
        asked: the questions, in order.
    """

    def __init__(self, begun: Written, *, silent: bool = False) -> None:
        self.silent = silent
        self.asked: list[Ticket] = []
        self._written = begun
        self._again = iter(begun.told)
        self._whole = True
        self._now: Micros = 0
        self._births = 0
        self._waits: list[tuple[Micros, int, Callable[[], None]]] = []

    def tell(self, find: Callable[[], Any]) -> Any:
        """An outcome: found out now, or what it was."""
        if self.silent:
            return next(self._again, None)
        outcome = find()
        if len(self._written.told) < _MOST:
            self._written.told.append(outcome)
        else:
            self._whole = False
        return outcome

    def lose(self) -> None:
        """Something happens that cannot be written down."""
        self._whole = False

    def answered(self, ticket: Ticket, answer: Answer) -> None:
        """An answer has come."""
        if not self.silent and ticket in self.asked:
            self._written.rounds[-1].append((self.asked.index(ticket), answer))

    def go_on(self) -> None:
        """A request brings answers."""
        self._written.rounds.append([])

    def write(self) -> bytes | None:
        """The past as bytes; None if there is something in it that cannot be written down."""
        return msgspec.json.encode(self._written) if self._whole else None

    # --- again

    def later(self, wait: Micros, call: Callable[[], None]) -> None:
        """In place of a wait."""
        self._births += 1
        heappush(self._waits, (self._now + wait, self._births, call))

    def play_again(self, run: Run) -> bool:
        """Plays a run that has just been started up to where it waits now.

        Returns:
            Whether it waits for the client there, as it did.
        """
        run.stage.pump()
        self._wait_through(run)
        for answers in self._written.rounds:
            for number, answer in answers:
                if number >= len(self.asked):
                    return False
                run.answer(self.asked[number], answer)
            run.stage.pump()
            self._wait_through(run)
        self.silent = False
        return run.running and bool(run.tickets)

    def _wait_through(self, run: Run) -> None:
        while self._waits:
            self._now, _, call = heappop(self._waits)
            call()
            run.stage.pump()


def read(data: bytes) -> Written | None:
    """The past in bytes, None if they are none."""
    try:
        return msgspec.json.decode(data, type=Written)
    except msgspec.MsgspecError:
        return None


def remember(run: Run, turn: int) -> None:
    """From here on a turn remembers what it gets from outside: it may have to be played again.

    Args:
        run: the turn, before anything of it has played.
        turn: which of the scenario's turns it is.
    """
    session, scope = run.session, run.scope
    run.past = Past(
        Written(
            number=session.turns,
            turn=turn,
            prompt=scope.prompt or "",
            message=scope.message,
            facts=run.facts,
            groups=dict(scope.groups),
            messages=session.messages,
            calls=session.calls,
            told=[],
            rounds=[],
        )
    )


def revive(agent: Agent, session: Session) -> Run | None:
    """The turn that waits for its client in this session, though it began in another process; None: there is none.

    It is played again in silence. If it does not come to where it was, it is given up.
    """
    begun = None if session.parked is None else read(session.parked)
    if begun is None or begun.turn >= len(agent.scenario.turns):
        return None
    counts = session.messages, session.calls
    session.messages, session.calls = begun.messages, begun.calls
    scope = Scope(agent.world, session, prompt=begun.prompt, groups=begun.groups, message=begun.message)
    run = agent.open_turn(session, scope, Silent(), begun.number)
    run.facts = begun.facts
    run.past = Past(begun, silent=True)
    run.start(agent.script(run, agent.scenario.turns[begun.turn].steps))
    waits = run.past.play_again(run)
    session.messages, session.calls = max(counts[0], session.messages), max(counts[1], session.calls)
    agent.note("revived" if waits else "not_revived", session.id, turn=begun.number)
    if not waits:
        run.drop()
        session.parked = None
        agent.world.sessions.changed(session)
        return None
    run.out = agent.presence.audience(session)
    return run


class Silent:
    """The output of a run that is played again: it takes everything and tells nobody."""

    room = 1024
    peer: Peer | None = None

    def same_client(self, other: Output) -> bool:
        """See `Output`."""
        return False

    def emit(self, item: Item, origin: Origin) -> bool:
        """See `Output`."""
        return True

    def admit(self, tool: ToolCall, ask: bool) -> Admission:
        """See `Output`."""
        return Admission.INLINE

    def ask(self, need: Need, ticket: Ticket, origin: Origin) -> bool:
        """See `Output`."""
        return True

    def withdraw(self, ticket: Ticket) -> None:
        """See `Output`."""

    def parked(self, open: Sequence[Ticket]) -> None:
        """See `Output`."""

    def end(self, how: Stop | Fail) -> None:
        """See `Output`."""
