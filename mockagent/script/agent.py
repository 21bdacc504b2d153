"""The scripted agent: what the protocols' handlers talk to.

It picks the turn that answers a prompt, starts, cancels and ends runs, plays what is scheduled, and knows who listens.
It knows no protocol: prompts come in neutral form, and everything goes out through `Output`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any

import msgspec

from mockagent.errors import Refusal
from mockagent.message import Origin, Peer
from mockagent.scenario import model
from mockagent.script.audience import Audience
from mockagent.script.match import ALWAYS, Counters, Match, glob, matches
from mockagent.script.output import Answer, Fail, Output, Stop
from mockagent.script.pace import draw
from mockagent.script.placeholders import Scope, Unset, fill_text
from mockagent.script.play import play
from mockagent.script.pointer import Absent, get
from mockagent.script.replay import replay
from mockagent.script.run import Run, Script
from mockagent.script.stage import Stage
from mockagent.world.history import Part
from mockagent.world.metadata import title_from
from mockagent.world.sessions import Session
from mockagent.world.world import World

Note = Callable[..., None]
Visit = Callable[[Session], Output]
"""Makes the output of a client to a session that it has not opened."""


class Prompt(msgspec.Struct, kw_only=True):
    """What starts a turn.

    Attributes:
        text: its text, blocks without text left out.
        parts: the whole content, for the history.
        message: the whole message that brought it.
        facts: `protocol`, `transport`, `params`, and what else conditions may see.
        tool_result: name of the tool whose result starts the turn (AAP, a call left open in the history).
    """

    text: str
    parts: list[Part]
    message: Any
    facts: dict[str, Any]
    tool_result: str | None = None


class Waiting:
    """A prompt that waits for the turn before it to end.

    Args:
        begin: starts its turn.
        call_off: takes it out of the queue and answers it.

    Attributes:
        run: its turn, once that has begun.
    """

    def __init__(self, begin: Callable[[], Run], call_off: Callable[[Waiting], None]) -> None:
        self._begin = begin
        self._call_off = call_off
        self.run: Run | None = None

    def start(self) -> None:
        """Its turn has come."""
        self.run = self._begin()

    def cancel(self) -> None:
        """Cancels the prompt, whether or not its turn has begun."""
        if self.run is not None:
            self.run.cancel()
        else:
            self._call_off(self)


class Agent:
    """Plays one scenario in one world.

    Args:
        world: clock, chances, sessions.
        stage: shared by all agents of the process.
        note: writes a line to the journal: `note(event, session_id, **detail)`.
        complain: tells the person at the terminal: `complain(text)`.

    Attributes:
        process: does `exit` and `stderr` to the process when they are steps and no channel has to empty before.
    """

    def __init__(self, world: World, stage: Stage, *, note: Note, complain: Callable[[str], None]) -> None:
        self.world = world
        self.stage = stage
        self.note = note
        self._complain = complain
        self.counters = Counters()
        self.process: Callable[[str, Any], None] = _nowhere
        self.on_event: list[Callable[[str, str | None], None]] = []
        self._runs: dict[str, list[Run]] = {}
        self._turns: dict[str, list[Run]] = {}
        self._queues: dict[str, list[Waiting]] = {}
        self._members: dict[str, list[Output]] = {}
        self._visitors: list[Visit] = []
        self._listeners: list[tuple[str, str, Callable[[object], None]]] = []

    @property
    def scenario(self) -> model.Scenario:
        """What it plays."""
        return self.world.scenario

    # --- sessions

    def create(self, cwd: str | None, directories: Sequence[str] = ()) -> Session:
        """Makes a session and opens it."""
        return self.world.sessions.create(cwd, tuple(directories))

    def session(self, id: str) -> Session:
        """The session of that id.

        Raises:
            Refusal: `session_not_found`.
        """
        session = self.world.sessions.get(id)
        if session is None:
            raise Refusal("session_not_found", f"There is no session {id!r}", sessionId=id)
        return session

    def active(self, id: str) -> Session:
        """The session of that id, which must be open.

        Raises:
            Refusal: `session_not_found`, `session_inactive`.
        """
        session = self.session(id)
        if session.state != "active":
            raise Refusal("session_inactive", f"Session {id!r} is not active: load or resume it first", sessionId=id)
        return session

    def join(self, session: Session, out: Output) -> None:
        """Adds somebody to the audience of a session; a client's second output takes the place of its first."""
        members = self._members.setdefault(session.id, [])
        members[:] = [member for member in members if not member.same_client(out)]
        members.append(out)

    def leave(self, out: Output, session_id: str | None = None) -> None:
        """Takes a client out of the audience of one session, or of all."""
        for id in [session_id] if session_id is not None else list(self._members):
            members = self._members.get(id, [])
            members[:] = [member for member in members if not member.same_client(out)]
            if not members:
                self._members.pop(id, None)
            for run in self._runs.get(id, ()):
                run.left(out)

    def audience(self, session: Session, leader: Output | None = None) -> Audience:
        """Everybody who has the session open, whoever that is by then."""
        return Audience(partial(self._present, session), leader)

    def _present(self, session: Session) -> Sequence[Output]:
        """Those who have it open; of a session that was never opened (a row in a list) every visitor hears."""
        members = self._members.get(session.id, ())
        if not members and session.state == "stored":
            return [make(session) for make in self._visitors]
        return members

    def visit(self, make: Visit) -> Callable[[], None]:
        """Somebody is there who also hears of sessions that nobody has opened.

        Returns:
            A function that ends the visit.
        """
        self._visitors.append(make)
        return partial(self._visitors.remove, make)

    def opened(self, session: Session) -> None:
        """Tells that a session was opened, after the reply that says so."""
        self.event("session_opened", session)

    # --- turns

    def prompt(self, session: Session, prompt: Prompt, out: Output) -> Run | Waiting | None:
        """Starts the turn that answers a prompt, or does what `sessions.busy` says while another one runs.

        Args:
            session: where; it must be active.
            prompt: what was said.
            out: gets the turn's output and its end.

        Returns:
            What can be cancelled: the turn, or the prompt that waits for it; None if it was refused.
        """
        if not self.running(session):
            return self._begin(session, prompt, out)
        policy = self.scenario.sessions.busy
        if policy == "parallel":
            return self._begin(session, prompt, out)
        if policy not in ("queue", "replace"):
            out.end(Fail(policy))
            return None
        if policy == "replace":
            self.cancel(session)
        waiting = Waiting(partial(self._begin, session, prompt, out), partial(self._call_off, session, out))
        self._queues.setdefault(session.id, []).append(waiting)
        return waiting

    def _call_off(self, session: Session, out: Output, waiting: Waiting) -> None:
        queue = self._queues.get(session.id, [])
        if waiting in queue:
            queue.remove(waiting)
            out.end(Stop("cancelled"))

    def _begin(self, session: Session, prompt: Prompt, out: Output) -> Run:
        session.turns += 1
        session.prompt = prompt.text
        if prompt.parts:
            session.history.say("user", prompt.parts, f"user_{session.turns}")
        self.world.sessions.touch(session)
        scope = Scope(self.world, session, prompt=prompt.text, message=prompt.message)
        run = Run(
            self,
            session,
            scope,
            origin="turn",
            out=self.audience(session, out),
            ended=self._turn_ended,
            label=f"turn {session.turns}",
        )
        run.facts = dict(prompt.facts)
        if prompt.tool_result is not None:
            run.facts["tool_result"] = prompt.tool_result
        self._turns.setdefault(session.id, []).append(run)
        self._runs.setdefault(session.id, []).append(run)
        steps = self._choose(run)
        self.event("turn_started", session)
        run.start(play(run, steps))
        return run

    def _choose(self, run: Run) -> tuple[model.Step, ...]:
        for turn in self.scenario.turns:
            found = ALWAYS if turn.when is None else self.match(turn.when, run)
            if found is None:
                continue
            run.scope.groups = found.groups
            if turn.save:
                self.save(turn.save, run.scope.message, run.scope)
            return turn.steps
        self._complain(f"no turn of {self.scenario.name!r} answers the prompt {run.scope.prompt!r:.60}")
        self.note("no_turn_matched", run.session.id, prompt=run.scope.prompt)
        return (model.Step(verb="say", payload=("No turn of this scenario answers “${prompt}”.",), dynamic=True),)

    def _turn_ended(self, run: Run, how: Stop | Fail) -> None:
        session = run.session
        turns = self._turns.get(session.id, [])
        if run in turns:
            turns.remove(run)
        session.last_stop = how.reason if isinstance(how, Stop) else "error"
        self.world.sessions.touch(session)
        self.stage.soon(partial(self._after_turn, session))

    def _after_turn(self, session: Session) -> None:
        """What follows once the reply has left: the title, what is scheduled, the prompt that waited."""
        self._title(session)
        self.event("turn_ended", session)
        queue = self._queues.get(session.id)
        if queue and not self.running(session) and session.state == "active":
            queue.pop(0).start()

    def _title(self, session: Session) -> None:
        rules = self.scenario.sessions.auto_title
        if rules is None or session.title is not None or session.turns != 1:
            return
        title = title_from(session.prompt)
        if title is not None:
            wait = draw(rules.after, self.rng("waits", session))
            self.stage.after(wait, partial(self._give_title, session, title), room=self._room_of(session))

    def _room_of(self, session: Session) -> Callable[[], int]:
        return lambda: self.audience(session).room

    def _give_title(self, session: Session, title: str) -> None:
        """A title that the scenario gave in the meantime wins."""
        if session.title is None and session.state == "active":
            step = model.Step(verb="info", payload=model.InfoFields(title=title))
            self.play(session, (step,), origin="schedule")

    def running(self, session: Session) -> bool:
        """Whether a turn runs in the session."""
        return bool(self._turns.get(session.id))

    def turn(self, session: Session) -> Run | None:
        """The turn that runs in the session, the last one if there are several."""
        turns = self._turns.get(session.id)
        return turns[-1] if turns else None

    def run_of(self, session: Session, out: Output) -> Run | None:
        """The turn that speaks to this output, or None."""
        for run in self._turns.get(session.id, ()):
            if run.out is not None and run.out.same_client(out):
                return run
        return None

    def cancel(self, session: Session) -> None:
        """Cancels every turn of the session, and the prompts that wait; without any it does nothing."""
        for waiting in list(self._queues.get(session.id, ())):
            waiting.cancel()
        for run in list(self._turns.get(session.id, ())):
            run.cancel()

    def close(self, session: Session) -> None:
        """Cancels what runs or waits, ends what is scheduled, and frees the session."""
        for waiting in list(self._queues.get(session.id, ())):
            waiting.cancel()
        for run in list(self._runs.get(session.id, ())):
            if run.running and run.origin == "turn":
                run.cancel()
            else:
                run.drop()
        self._queues.pop(session.id, None)
        session.state = "closed"

    @property
    def busy(self) -> bool:
        """Whether a turn runs anywhere."""
        return any(self._turns.values())

    @property
    def playing(self) -> bool:
        """Whether anything plays anywhere: a turn, what stands behind its end, what is scheduled."""
        return any(self._runs.values())

    def cancel_all(self) -> None:
        """Cancels every turn, and every prompt that waits."""
        for queue in list(self._queues.values()):
            for waiting in list(queue):
                waiting.cancel()
        for runs in list(self._turns.values()):
            for run in list(runs):
                run.cancel()

    # --- playing outside of turns

    def play(
        self,
        session: Session,
        steps: Sequence[model.Step],
        *,
        origin: Origin,
        message: Any = None,
        facts: Mapping[str, Any] | None = None,
        at_once: bool = False,
        label: str | None = None,
        to: Peer | None = None,
    ) -> Run:
        """Plays steps to whoever has the session open: scheduled ones, those of a fault, those of a test.

        Args:
            session: where.
            steps: what.
            origin: who wanted it.
            message: the message being answered, for placeholders.
            facts: what conditions see beside the session's own.
            at_once: what can be sent without waiting is sent before this returns.
            label: names its chances; runs of one label in a session are numbered.
            to: only this client hears it, if it has the session open.
        """
        scope = Scope(self.world, session, prompt=session.prompt or None, message=message)
        out = self._reach(session, to) or self.audience(session)
        run = Run(self, session, scope, origin=origin, out=out, label=self._numbered(session, label or origin))
        run.facts = dict(facts or {})
        self._runs.setdefault(session.id, []).append(run)
        run.start(play(run, steps), at_once=at_once)
        return run

    def replay(self, session: Session, out: Output, done: Callable[[], None]) -> None:
        """Plays the history again to one client, and calls `done` when it is through or the session has ended."""
        scope = Scope(self.world, session)
        run = Run(self, session, scope, origin="replay", out=out, label=self._numbered(session, "replay"))
        run.on_done = done
        self._runs.setdefault(session.id, []).append(run)
        run.start(replay(run), at_once=True)

    def end_schedules(self) -> None:
        """Ends what is scheduled: nobody will be there to hear it."""
        for runs in list(self._runs.values()):
            for run in list(runs):
                if run.origin == "schedule":
                    run.drop()

    def _reach(self, session: Session, peer: Peer | None) -> Output | None:
        """The output that leads to a client: the one of its running turn, or that of the session it has open."""
        if peer is None:
            return None
        for run in self._turns.get(session.id, ()):
            leader = run.out.leader if isinstance(run.out, Audience) else None
            if leader is not None and leader.peer is peer:
                return leader
        return next((member for member in self._members.get(session.id, ()) if member.peer is peer), None)

    def _numbered(self, session: Session, label: str) -> str:
        """A name for the chances of one run: those of one run never move those of another."""
        session.runs[label] = session.runs.get(label, 0) + 1
        return f"{label} {session.runs[label]}"

    def script(self, run: Run, steps: Sequence[model.Step]) -> Script:
        """The generator that plays steps in a run."""
        return play(run, steps)

    def run_done(self, run: Run) -> None:
        """A run has nothing left to play."""
        for table in (self._runs, self._turns):
            runs = table.get(run.session.id, [])
            if run in runs:
                runs.remove(run)
            if not runs:
                table.pop(run.session.id, None)

    def event(self, event: str, session: Session | None) -> None:
        """Something happened that `schedule` or a fault may wait for."""
        self._tell(event, session)
        for entry in self.scenario.schedule:
            if entry.event == event:
                for target in self._targets(entry, session):
                    self._schedule(entry, target)

    def listed(self, rows: Sequence[Session]) -> None:
        """Sessions were in a list; an entry of the schedule concerns those of them that it names."""
        for row in rows:
            self._tell("session_listed", row)
            for entry in self.scenario.schedule:
                if entry.event == "session_listed" and (entry.session == "current" or glob(entry.session, row.id)):
                    self._schedule(entry, row)

    def _tell(self, event: str, session: Session | None) -> None:
        for watcher in list(self.on_event):
            watcher(event, session.id if session is not None else None)

    def _targets(self, entry: model.Scheduled, session: Session | None) -> Sequence[Session]:
        """Where an entry of the schedule plays: in the session of the event, in another one, or in several."""
        if entry.session == "current":
            return () if session is None else (session,)
        if "*" in entry.session:
            return [other for other in self.world.sessions.listed() if glob(entry.session, other.id)]
        found = self.world.sessions.get(entry.session)
        if found is None:
            why = f"there is no session {entry.session!r}"
            self.note("skipped", None, schedule=str(entry.place), why=why)
            return ()
        return (found,)

    def _schedule(self, entry: model.Scheduled, target: Session) -> None:
        times = entry.times if entry.times is not None else (None if entry.every is not None else 1)
        body = model.Repeat(times=times, every=entry.every or 0, steps=entry.steps)
        steps = (model.Step(verb="repeat", payload=body, after=entry.after, when=entry.when, place=entry.place),)
        self.play(target, steps, origin="schedule")

    # --- listening

    def listen(self, method: str, session: Session, heard: Callable[[object], None]) -> Callable[[], None]:
        """Calls `heard` once with the next message of that method in that session.

        Returns:
            A function that calls it off.
        """
        entry = (method, session.id, heard)
        self._listeners.append(entry)

        def off() -> None:
            if entry in self._listeners:
                self._listeners.remove(entry)

        return off

    def heard(self, method: str, session_id: str | None, message: object) -> None:
        """The client called a method."""
        if not self._listeners:
            return
        for entry in list(self._listeners):
            wanted, where, call = entry
            if wanted == method and (session_id is None or session_id == where):
                self._listeners.remove(entry)
                call(message)

    # --- conditions, chances, saving

    def rng(self, purpose: str, session: Session | None) -> Random:
        """The running generator for a purpose."""
        return self.world.seeds.rng(purpose, session.id if session is not None else None)

    def facts(self, session: Session | None) -> dict[str, Any]:
        """What conditions see of a session."""
        if session is None:
            return {}
        return {
            "prompt": session.prompt,
            "turn": session.turns,
            "session": session.id,
            "mode": session.mode,
            "option": session.config,
            "running": self.running(session),
            "last_stop": session.last_stop,
        }

    def match(
        self, when: model.When, run: Run, *, answer: Answer | None = None, text: str | None = None
    ) -> Match | None:
        """Whether a condition holds in a run; the match carries the groups of a regex."""
        facts = self.facts(run.session) | run.facts
        facts["prompt"] = run.scope.prompt
        facts["origin"] = run.origin
        facts["fill"] = partial(fill_text, scope=run.scope)
        if run.origin == "turn":
            facts["running"] = run.running
        if answer is not None:
            facts["outcome"] = (answer.outcome,) if answer.option is None else (answer.outcome, answer.option)
            facts["text"] = text or ""
            facts["result"] = answer.value
        return matches(when, facts, self.counters, partial(self._chance, run.session), unset=partial(self._unset, run))

    def _chance(self, session: Session, purpose: str) -> Random:
        return self.rng(purpose, session)

    def _unset(self, run: Run, missing: Unset) -> None:
        self.note("when_false", run.session.id, why=str(missing))

    def holds(self, when: model.When, run: Run, *, answer: Answer | None = None, text: str | None = None) -> bool:
        """Whether a condition holds in a run."""
        return self.match(when, run, answer=answer, text=text) is not None

    def save(self, wanted: Mapping[str, str], message: Any, scope: Scope) -> None:
        """Keeps values of a message under names; a pointer to nothing is noted and keeps nothing."""
        for name, pointer in wanted.items():
            try:
                scope.keep(name, get(message, pointer))
            except Absent:
                where = scope.session.id if scope.session is not None else None
                self.note("not_saved", where, name=name, pointer=pointer)

    def changed(self, session: Session, verb: str, payload: Any) -> None:
        """A step changed what the session shows: its mode, an option."""
        change = _CHANGES.get(verb)
        if change is not None:
            change(session, payload)

    def complain(self, text: str, error: BaseException | None = None) -> None:
        """Tells the person at the terminal; with an error of ours also where it happened."""
        self._complain(text)
        if error is not None:
            import traceback

            traceback.print_exception(error, file=sys.stderr)


def _nowhere(verb: str, payload: Any) -> None:
    """There is no process to do it to."""


def _set_mode(session: Session, payload: Any) -> None:
    session.mode = payload


def _set_option(session: Session, payload: Any) -> None:
    session.config[payload["id"]] = payload["value"]


_CHANGES: dict[str, Callable[[Session, Any], None]] = {"mode": _set_mode, "option": _set_option}
