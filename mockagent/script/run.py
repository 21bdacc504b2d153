"""One run of steps: the branches it consists of, its questions to the client, its end.

A run belongs to its session and plays on the stage; it sends through an `Output` that can be exchanged while it plays
(the next AAP request, a reconnect, nobody). The steps themselves are generators (`script.play`); what they yield
(`script.commands`) is carried out here. Nothing in this module waits.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from msgspec import UNSET
from msgspec.structs import replace

from mockagent.message import Origin
from mockagent.scenario.model import Micros, Step
from mockagent.script.audience import Audience
from mockagent.script.commands import Command, Ended, Gather, Idle, Listen, Script, Signal
from mockagent.script.output import (
    Admission,
    Answer,
    Fail,
    Info,
    Item,
    Need,
    Output,
    Permission,
    Stop,
    Surface,
    Text,
    Ticket,
    ToolCall,
    ToolUpdate,
)
from mockagent.script.stage import Stage, Timer
from mockagent.world.clock import SECOND
from mockagent.world.history import Called

if TYPE_CHECKING:
    from mockagent.script.agent import Agent
    from mockagent.script.past import Past
    from mockagent.script.placeholders import Scope
    from mockagent.world.sessions import Session

_PLENTY = 1024

CANCEL_GRACE = 2.0
"""Seconds (real time) that a cancelled turn waits for the client to answer what it was asked."""


class State(enum.Enum):
    """Where a run is in its life."""

    PLAYING = enum.auto()
    CANCELLING = enum.auto()  # branches are gone, open questions are waited for
    AFTER = enum.auto()  # the reply has left, steps behind `stop` play
    DONE = enum.auto()


class Branch:
    """One line of steps within a run."""

    __slots__ = ("children", "parent", "script", "ticket", "timer", "unhear")

    def __init__(self, script: Script, parent: Branch | None = None) -> None:
        self.script: Script | None = script
        self.parent = parent
        self.children = 0
        self.timer: Timer | None = None
        self.ticket: Ticket | None = None
        self.unhear: Callable[[], None] = _nothing


def _nothing() -> None:
    """A branch that listens to nobody has nothing to call off."""


class Run:
    """A turn or a schedule entry that plays.

    Args:
        agent: whose script it is.
        session: where it plays.
        scope: what placeholders and conditions see.
        origin: what its messages are marked with.
        out: where it sends to; None: nobody is there.
        ended: called once with the end of the turn, before its reply is sent.
        label: names its chances, so that they depend on nothing else that plays.
    """

    def __init__(
        self,
        agent: Agent,
        session: Session,
        scope: Scope,
        *,
        origin: Origin,
        out: Output | None,
        ended: Callable[[Run, Stop | Fail], None] | None = None,
        label: str = "",
    ) -> None:
        self.agent = agent
        self.session = session
        self.scope = scope
        self.origin: Origin = origin
        self.out = out
        self.state = State.PLAYING
        self.tickets: dict[Ticket, Branch] = {}
        self._deadlines: dict[Ticket, Timer] = {}
        self._overdue: set[Ticket] = set()
        self.open_calls: dict[str, ToolCall] = {}
        self.last_message: dict[str, str] = {}
        self.goes_on = False  # the step that plays is not the last of its message
        self.facts: dict[str, Any] = {}
        self.past: Past | None = None
        self.on_done: Callable[[], None] | None = None
        self._ended = ended
        self._label = label
        self._chances: dict[str, Random] = {}
        self._branches: dict[Branch, None] = {}
        self._current: Branch | None = None
        self._grace: Timer | None = None

    @property
    def stage(self) -> Stage:
        """The stage it plays on."""
        return self.agent.stage

    @property
    def running(self) -> bool:
        """Whether its turn is open: no reply has been sent yet."""
        return self.state in (State.PLAYING, State.CANCELLING)

    @property
    def silent(self) -> bool:
        """Whether it is played again, and what it says has been said already."""
        return self.past is not None and self.past.silent

    @property
    def branched(self) -> bool:
        """Whether several lines of steps play side by side."""
        return len(self._branches) > 1

    @property
    def done(self) -> bool:
        """Whether it has nothing left to play."""
        return self.state is State.DONE

    # --- life

    def start(self, script: Script, *, at_once: bool = False) -> None:
        """Begins to play: behind what is ready already, or at once, as far as it gets without waiting."""
        if not at_once:
            self._spawn(script, None)
            return
        branch = Branch(script)
        self._branches[branch] = None
        self._go(branch)

    def attach(self, out: Output | None) -> None:
        """Somebody else leads from now on: the next request of an AAP client, a reconnect, or nobody."""
        if isinstance(self.out, Audience):
            self.out.lead(out)
        if self.running:
            self._watch_parking()

    def left(self, out: Output) -> None:
        """A client has gone."""
        if isinstance(self.out, Audience):
            self.out.left(out)
        elif self.out is not None and self.out.same_client(out):
            self.out = None

    def answer(self, ticket: Ticket, answer: Answer) -> None:
        """Settles a question. An answer that comes too late (after a cancel or a time-out) changes nothing."""
        branch = self.tickets.pop(ticket, None)
        if branch is None:
            return
        if self.past is not None:
            self.past.answered(ticket, answer)
        self._no_deadline(ticket)
        if ticket in self._overdue:
            self._overdue.discard(ticket)
            answer = replace(answer, outcome="timeout", option=None)
        if self.state is State.CANCELLING:
            if not self.tickets:
                self._finish_cancel()
            return
        branch.ticket = None
        self.stage.soon(partial(self._go, branch, answer))

    def cancel(self) -> None:
        """Stops the turn by the book: nothing more is started, open questions are awaited, then the end is told.

        Source: ACP, prompt turn, section on cancellation.
        """
        if self.state is State.AFTER:
            self.drop()
        if self.state is not State.PLAYING:
            return
        self.state = State.CANCELLING
        self._kill(keep_tickets=True)
        for ticket in list(self.tickets):  # some are settled as soon as they are taken back
            if self.out is not None and not isinstance(ticket.need, Permission):
                self.out.withdraw(ticket)
        if self.tickets and self._heard:
            self._grace = self.stage.timeout(CANCEL_GRACE, self._finish_cancel)
        else:
            self.stage.soon(self._finish_cancel)

    @property
    def _heard(self) -> bool:
        """Whether somebody may still answer; of a parked turn nobody has been asked."""
        return self.out.leader is not None if isinstance(self.out, Audience) else self.out is not None

    def drop(self) -> None:
        """Stops without a word: the session or the process is gone."""
        self._kill()
        self._become_done()

    def stop(self) -> None:
        """Ends at once: a turn as cancelled, without waiting for the answers that are open; anything else silently."""
        if self.origin == "turn" and self.running:
            self.state = State.CANCELLING
            self._finish_cancel()
        else:
            self.drop()

    def _finish_cancel(self) -> None:
        if self.state is not State.CANCELLING:
            return
        if self._grace is not None:
            self._grace.cancel()
        self._finish(Stop("cancelled"), ())

    def _finish(self, how: Stop | Fail, rest: Sequence[Step]) -> None:
        self._kill()
        self._close_calls()
        self.state = State.AFTER
        if self._ended is not None:
            self._ended(self, how)
        if self.out is not None:
            self.out.end(how)
        self.out = self.agent.presence.audience(self.session)
        if rest and self.state is State.AFTER:
            self._spawn(self.agent.script(self, rest), None)
        else:
            self._become_done()

    def _become_done(self) -> None:
        if self.state is State.DONE:
            return
        self.state = State.DONE
        self.agent.run_done(self)
        if self.on_done is not None:
            self.on_done()

    def _close_calls(self) -> None:
        """A whole `tool` that was cut short is shown as failed; calls opened by hand stay as the scenario left them."""
        for id in list(self.open_calls):
            self.emit(ToolUpdate(id=id, fields={"status": "failed"}, final=True))

    # --- branches

    def _spawn(self, script: Script, parent: Branch | None) -> None:
        branch = Branch(script, parent)
        self._branches[branch] = None
        self.stage.soon(partial(self._go, branch))

    def _go(self, branch: Branch, value: object = None) -> None:
        if branch.script is None:
            return
        before, self._current = self._current, branch
        try:
            command = branch.script.send(value)
        except StopIteration:
            self._branch_ended(branch)
        except Ended as end:
            self._finish_or_drop(end)
        except Exception as error:
            self._crashed(error)
        else:
            if branch.script is not None:  # else it was ended by what it sent itself
                self._obey(branch, command)
        finally:
            self._current = before

    def _obey(self, branch: Branch, command: Command) -> None:
        if self.silent and isinstance(command, int | Idle):
            assert self.past is not None
            self.past.later(command if isinstance(command, int) else command.wait, partial(self._go, branch))
        elif isinstance(command, int):
            branch.timer = self.stage.after(command, partial(self._go, branch), room=self.room)
        elif command is Signal.ROOM:
            self.stage.with_room(self.room, partial(self._go, branch))
        elif command is Signal.BREATH:
            self.stage.breathe(partial(self._go, branch))
        elif isinstance(command, Idle):
            branch.timer = self.stage.after(command.wait, partial(self._go, branch), endless=True, room=self.room)
        elif isinstance(command, Ticket):
            branch.ticket = command
            self.tickets[command] = branch
            self._watch_parking()
        elif isinstance(command, Gather):
            branch.children = len(command.scripts)
            for script in command.scripts:
                self._spawn(script, branch)
            if not command.scripts:
                self.stage.soon(partial(self._go, branch))
        elif isinstance(command, Listen):
            self._listen(branch, command)

    def _listen(self, branch: Branch, command: Listen) -> None:
        if self.past is not None:
            self.past.lose()

        def heard(message: object) -> None:
            if branch.timer is not None:
                branch.timer.cancel()
            self.stage.soon(partial(self._go, branch, message))

        branch.unhear = self.agent.listeners.listen(command.method, self.session, heard)
        if command.timeout is not None:

            def late() -> None:
                branch.unhear()
                self._go(branch)

            branch.timer = self.stage.after(command.timeout, late, room=self.room)

    def _branch_ended(self, branch: Branch) -> None:
        branch.script = None
        self._branches.pop(branch, None)
        parent = branch.parent
        if parent is None:
            if not self._branches:
                self._finish_or_drop(Ended(Stop("end_turn")))
            return
        parent.children -= 1
        if parent.children == 0:
            self.stage.soon(partial(self._go, parent))
        else:
            self._watch_parking()

    def _finish_or_drop(self, end: Ended) -> None:
        if self.state is State.PLAYING and self.origin == "turn" and not self.silent:
            self._finish(end.how, end.rest)
        else:
            self._kill()
            self._become_done()

    def _crashed(self, error: Exception) -> None:
        """A mistake of ours: the turn fails, everything else goes on."""
        self.agent.note("bug", self.session.id, error=f"{type(error).__name__}: {error}")
        self.agent.complain(f"internal error while playing: {type(error).__name__}: {error}", error)
        self._finish_or_drop(Ended(Fail("internal_error")))

    def _kill(self, *, keep_tickets: bool = False) -> None:
        branches, self._branches = list(self._branches), {}
        for branch in branches:
            script, branch.script = branch.script, None
            if branch.timer is not None:
                branch.timer.cancel()
            branch.unhear()
            if script is not None and branch is not self._current:
                script.close()
        if not keep_tickets:
            open_tickets, self.tickets = list(self.tickets), {}
            for ticket in open_tickets:
                self._no_deadline(ticket)
                if self.out is not None:
                    self.out.withdraw(ticket)

    # --- parking

    def _watch_parking(self) -> None:
        self.stage.settled(self, self._check_parking)

    def _check_parking(self) -> None:
        if self.state is not State.PLAYING or not self.tickets or self.out is None:
            return
        if all(branch.ticket is not None or branch.children for branch in self._branches):
            self.out.parked(list(self.tickets))

    # --- what steps call

    def rng(self, purpose: str) -> Random:
        """The run's own generator for a purpose."""
        found = self._chances.get(purpose)
        if found is None:
            found = self._chances[purpose] = self.agent.world.seeds.fresh(f"{self._label}/{purpose}", self.session.id)
        return found

    def room(self) -> int:
        """How many items may be sent now."""
        return _PLENTY if self.out is None else self.out.room

    def admit(self, tool: ToolCall, ask: bool) -> Admission:
        """How the protocol treats a tool call; with nobody there it runs inline."""
        return Admission(self.tell(lambda: self._admit(tool, ask).value))

    def _admit(self, tool: ToolCall, ask: bool) -> Admission:
        return Admission.INLINE if self.out is None else self.out.admit(tool, ask)

    def tell(self, find: Callable[[], Any]) -> Any:
        """Finds something out that depends on more than the steps; a turn that is played again is told what it was."""
        return find() if self.past is None else self.past.tell(find)

    def emit(self, item: Item) -> bool:
        """Sends an item and keeps it in the history.

        Returns:
            False if the protocol cannot say it, or nobody is there.
        """
        if isinstance(item, ToolUpdate) and item.final:
            self.open_calls.pop(item.id, None)
        if self.silent:
            return True
        self._record(item)
        said = self.out is not None and self.out.emit(item, self.origin)
        if not said:
            self.agent.note("skipped", self.session.id, item=type(item).__name__.lower(), why="cannot be said here")
        return said

    def _record(self, item: Item) -> None:
        history = self.session.history
        if isinstance(item, Text):
            history.say(item.role, list(item.parts), item.message_id)
            if not item.ends:  # activity is counted by messages, not by how many slices had room
                return
        elif isinstance(item, ToolCall):
            history.call(Called(id=item.id, name=item.name, input=item.input, fields=dict(item.fields), side=item.side))
        elif isinstance(item, ToolUpdate):
            history.update(item.id, item.fields, item.result if item.final else UNSET, item.denied)
        elif isinstance(item, Surface) and item.verb == "plan":
            history.plan(item.payload)
        if not isinstance(item, Info):
            self.agent.world.sessions.touch(self.session)

    def ask(self, need: Need, timeout: Micros | None = None) -> Ticket | None:
        """Puts a question to the client; None: it cannot be asked.

        Args:
            need: what is asked.
            timeout: after so long (real time) the question is taken back. Whatever the client answers then counts as a
                time-out; one that does not answer at all is waited for as long as after a cancel.
        """
        ticket: Ticket = Ticket(need, lambda answer: self.answer(ticket, answer))
        out = self.out
        if out is None or not self.tell(lambda: out.ask(need, ticket, self.origin)):
            return None
        if self.past is not None:
            self.past.asked.append(ticket)
        if timeout is not None:
            self._deadlines[ticket] = self.stage.timeout(timeout / SECOND, partial(self._too_late, ticket))
        return ticket

    def _too_late(self, ticket: Ticket) -> None:
        if ticket not in self.tickets or self.out is None:
            return
        self._overdue.add(ticket)
        self._deadlines[ticket] = self.stage.timeout(
            CANCEL_GRACE, partial(self.answer, ticket, Answer(outcome="timeout"))
        )
        self.out.withdraw(ticket)

    def _no_deadline(self, ticket: Ticket) -> None:
        timer = self._deadlines.pop(ticket, None)
        if timer is not None:
            timer.cancel()
