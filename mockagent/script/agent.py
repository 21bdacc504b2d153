"""The scripted agent: what the protocols' handlers talk to.

It picks the turn that answers a prompt, starts, cancels and ends runs. Who listens (`presence`), whether conditions
hold, what is scheduled, what steps wait for (`listeners`), and what a parked turn needs to go on in another process
(`past`) have modules of their own. It knows no protocol: prompts come in neutral form, and
everything goes out through `Output`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any

from mockagent.errors import Refusal
from mockagent.message import Origin, Peer
from mockagent.scenario import model
from mockagent.script.audience import Audience
from mockagent.script.commands import Script
from mockagent.script.conditions import Conditions
from mockagent.script.listeners import Listeners
from mockagent.script.match import ALWAYS
from mockagent.script.output import Fail, Output, Stop
from mockagent.script.pace import draw
from mockagent.script.placeholders import Scope, Unset, fill_step
from mockagent.script.play import play
from mockagent.script.pointer import Absent, get
from mockagent.script.presence import Presence
from mockagent.script.prompt import Prompt, Waiting
from mockagent.script.replay import replay
from mockagent.script.run import Run
from mockagent.script.schedule import Schedule
from mockagent.script.settings import choose_mode, choose_option
from mockagent.script.stage import Stage
from mockagent.world.cursors import Holder, Share
from mockagent.world.metadata import title_from
from mockagent.world.sessions import Session
from mockagent.world.world import World

Note = Callable[..., None]


class Agent:
    """Plays one scenario in one world.

    Args:
        world: clock, chances, sessions.
        stage: shared by all agents of the process.
        note: writes a line to the journal: `note(event, session_id, **detail)`.
        complain: tells the person at the terminal: `complain(text)`.

    Attributes:
        conditions: whether those of the scenario hold.
        process: does `exit` and `stderr` to the process when they are steps and no channel has to empty before.
    """

    def __init__(self, world: World, stage: Stage, *, note: Note, complain: Callable[[str], None]) -> None:
        self.world = world
        self.stage = stage
        self.note = note
        self._complain = complain
        self.conditions = Conditions(self)
        self.process: Callable[[str, Any], None] = _nowhere
        self.on_event: list[Callable[[str, str | None], None]] = []
        self._runs: dict[str, list[Run]] = {}
        self._turns: dict[str, list[Run]] = {}
        self._queues: dict[str, list[Waiting]] = {}
        self.presence = Presence(self.running)
        self.listeners = Listeners()
        self._schedule = Schedule(self)
        self._closing: dict[str, list[Callable[[], None]]] = {}
        world.sessions.fill = self._fill_history

    @property
    def scenario(self) -> model.Scenario:
        """What it plays."""
        return self.world.scenario

    # --- sessions

    def create(self, cwd: str | None, directories: Sequence[str] = ()) -> Session:
        """Makes a session and opens it."""
        return self.world.sessions.create(cwd, tuple(directories))

    def page(
        self, cwd: str | None, cursor: str | None, holder: Holder, share: Share | None = None
    ) -> tuple[list[Session], str | None]:
        """One page of the list, as `world.sessions` gives it. Why a cursor is not taken is noted.

        Raises:
            Refusal: `invalid_cursor`.
        """
        try:
            return self.world.sessions.page(cwd, cursor, holder, share)
        except Refusal as refusal:
            self.note("invalid_cursor", None, cursor=cursor, why=refusal.data.get("why"))
            raise

    def _fill_history(self, session: Session, step: model.Step) -> Any:
        """What a step of a stored history says; one with a placeholder that has no value stands as it is written."""
        try:
            return fill_step(step, Scope(self.world, session))
        except Unset as unset:
            self.note("skipped", session.id, step=str(step.place), verb=step.verb, why=str(unset))
            return step.payload

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

    def opened(self, session: Session) -> None:
        """Tells that a session was opened, after the reply that says so."""
        self.event("session_opened", session)

    def leave(self, out: Output, session_id: str) -> None:
        """A client has gone, or has closed a session: it hears nothing of that any more, its turns included."""
        self.presence.leave(out, session_id)
        for run in self._runs.get(session_id, ()):
            run.left(out)

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
        saved = out.peer.saved if out.peer is not None else None
        scope = Scope(self.world, session, prompt=prompt.text, message=prompt.message, saved=saved)
        run = self.open_turn(session, scope, self.presence.audience(session, out), session.turns)
        run.facts = dict(prompt.facts)
        if prompt.tool_result is not None:
            run.facts["tool_result"] = prompt.tool_result
        number, steps = self._choose(run)
        if self.world.sessions.keeps and number >= 0:
            from mockagent.script.past import remember

            remember(run, number)
        self.event("turn_started", session)
        run.start(play(run, steps))
        return run

    def open_turn(self, session: Session, scope: Scope, out: Output, number: int) -> Run:
        """A turn that is open from now on, though nothing of it plays yet.

        Args:
            session: where.
            scope: what its placeholders see.
            out: gets what it says, and its end.
            number: which turn of the session it is.
        """
        run = Run(self, session, scope, origin="turn", out=out, ended=self._turn_ended, label=f"turn {number}")
        self._turns.setdefault(session.id, []).append(run)
        self._runs.setdefault(session.id, []).append(run)
        return run

    def parked(self, run: Run) -> None:
        """A turn waits for its client, whose next request may come to another process."""
        if run.past is not None:
            run.session.parked = run.past.write()
            self.world.sessions.changed(run.session)

    def unparked(self, run: Run) -> None:
        """A request brings what a turn waits for."""
        if run.past is not None:
            run.past.go_on()
            run.session.parked = None
            self.world.sessions.changed(run.session)

    def _choose(self, run: Run) -> tuple[int, tuple[model.Step, ...]]:
        """The turn that answers: its number, -1 for none, and its steps."""
        for number, turn in enumerate(self.scenario.turns):
            found = ALWAYS if turn.when is None else self.conditions.match(turn.when, run)
            if found is None:
                continue
            run.scope.groups = found.groups
            if turn.save:
                self.save(turn.save, run.scope.message, run.scope)
            return number, turn.steps
        self._complain(f"no turn of {self.scenario.name!r} answers the prompt {run.scope.prompt!r:.60}")
        self.note("no_turn_matched", run.session.id, prompt=run.scope.prompt)
        words = "No turn of this scenario answers “${prompt}”."
        return -1, (model.Step(verb="say", payload=(words,), dynamic=True),)

    def _turn_ended(self, run: Run, how: Stop | Fail) -> None:
        session = run.session
        turns = self._turns.get(session.id, [])
        if run in turns:
            turns.remove(run)
        session.last_stop = how.reason if isinstance(how, Stop) else "error"
        session.parked = None
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
        return lambda: self.presence.audience(session).room

    def _give_title(self, session: Session, title: str) -> None:
        """A title that the scenario gave in the meantime wins."""
        if session.title is None and session.state == "active":
            step = model.Step(verb="info", payload=model.InfoFields(title=title))
            self.play(session, (step,), origin="schedule")

    def running(self, session: Session) -> bool:
        """Whether a turn runs in the session."""
        return bool(self._turns.get(session.id))

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

    def close(self, session: Session, done: Callable[[], None] | None = None) -> bool:
        """Cancels what runs or waits, ends what is scheduled, and frees the session.

        Args:
            session: which; nothing new begins in it from now on.
            done: called when the last turn has told its end, unless that is already so.

        Returns:
            Whether it is already so.
        """
        session.state = "closed"
        for waiting in list(self._queues.get(session.id, ())):
            waiting.cancel()
        for run in list(self._runs.get(session.id, ())):
            if run.running and run.origin == "turn":
                run.cancel()
            else:
                run.drop()
        self._queues.pop(session.id, None)
        self.presence.dismiss(session)  # whose turn it is still hears its end
        if session.id not in self._runs:
            return True
        if done is not None:
            self._closing.setdefault(session.id, []).append(done)
        return False

    @property
    def busy(self) -> bool:
        """Whether a turn runs anywhere."""
        return any(self._turns.values())

    @property
    def playing(self) -> bool:
        """Whether anything plays anywhere: a turn, what stands behind its end, what is scheduled."""
        return any(self._runs.values())

    def cancel_all(self) -> None:
        """Cancels every turn and every prompt that waits, and ends whatever else plays."""
        for queue in list(self._queues.values()):
            for waiting in list(queue):
                waiting.cancel()
        for runs in list(self._runs.values()):
            for run in list(runs):
                if run.running and run.origin == "turn":
                    run.cancel()
                else:
                    run.drop()

    # --- beginning anew

    def stop_all(self) -> None:
        """Ends everything that plays, at once: turns are answered as cancelled, whatever they still wait for."""
        for queue in list(self._queues.values()):
            for waiting in list(queue):
                waiting.cancel()
        for id in [*self._runs, *self.presence.sessions]:
            session = self.world.sessions.get(id)
            if session is not None:
                session.state = "closed"  # so that nothing follows
        for runs in list(self._runs.values()):
            for run in list(runs):
                run.stop()

    def restart(self, world: World) -> None:
        """Goes on in another world, in which nothing has happened yet. Visitors stay, and whoever watches events."""
        self.world = world
        self.conditions.clear()
        self._runs.clear()
        self._turns.clear()
        self._queues.clear()
        self.presence.clear()
        self.listeners.clear()
        self._schedule.clear()
        self._closing.clear()
        world.sessions.fill = self._fill_history

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
        out = self._reach(session, to) or self.presence.audience(session)
        peer = out.peer or self.presence.last(session)
        saved = peer.saved if peer is not None else None
        scope = Scope(self.world, session, prompt=session.prompt or None, message=message, saved=saved)
        run = Run(self, session, scope, origin=origin, out=out, label=self._numbered(session, label or origin))
        run.facts = dict(facts or {})
        self._runs.setdefault(session.id, []).append(run)
        run.start(play(run, steps), at_once=at_once)
        return run

    def replay(self, session: Session, out: Output, done: Callable[[], None]) -> None:
        """Plays the history again to one client, and calls `done` when it is through or the session has ended.

        With `live: held` it also says what is added meanwhile, for the client hears nothing else until then.
        """
        scope = Scope(self.world, session)
        run = Run(self, session, scope, origin="replay", out=out, label=self._numbered(session, "replay"))
        run.on_done = done
        self._runs.setdefault(session.id, []).append(run)
        held = self.scenario.sessions.replay.live == "held"
        run.start(replay(run, follow=held), at_once=True)

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
        return self.presence.member(session, peer)

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
        if run.session.id not in self._runs:
            for call in self._closing.pop(run.session.id, ()):
                call()

    # --- events

    def event(self, event: str, session: Session | None) -> None:
        """Something happened that a fault or the schedule may wait for."""
        self._tell(event, session)
        self._schedule.event(event, session)

    def listed(self, rows: Sequence[Session]) -> None:
        """Sessions were in a list."""
        for row in rows:
            self._tell("session_listed", row)
            self._schedule.listed(row)

    def _tell(self, event: str, session: Session | None) -> None:
        for watcher in list(self.on_event):
            watcher(event, session.id if session is not None else None)

    # --- chances, saving

    def rng(self, purpose: str, session: Session | None) -> Random:
        """The running generator for a purpose."""
        return self.world.seeds.rng(purpose, session.id if session is not None else None)

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
        agent = self.scenario.agent
        if verb == "mode":
            choose_mode(agent, session, payload)
        elif verb == "option":
            choose_option(agent, session, payload["id"], payload["value"])

    def complain(self, text: str, error: BaseException | None = None) -> None:
        """Tells the person at the terminal; with an error of ours also where it happened."""
        self._complain(text)
        if error is not None:
            import traceback

            traceback.print_exception(error, file=sys.stderr)


def _nowhere(verb: str, payload: Any) -> None:
    """There is no process to do it to."""
