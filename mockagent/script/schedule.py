"""What a scenario plays outside of turns: which entries an event sets off, and where.

Source: the format's `schedule`. What repeats, or comes with each look at a list, plays once at a time in a session.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from mockagent.scenario import model
from mockagent.script.match import glob
from mockagent.world.sessions import Session

if TYPE_CHECKING:
    from mockagent.script.agent import Agent
    from mockagent.script.run import Run

GLOB_LIMIT = 1000
"""So many sessions at the top of the list are looked at for a glob."""


class Schedule:
    """The schedule of one agent.

    Args:
        agent: plays the entries.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._once: dict[tuple[int, str], Run] = {}

    def event(self, event: str, session: Session | None) -> None:
        """Something happened."""
        for entry in self._agent.scenario.schedule:
            if entry.event == event:
                for target in self._targets(entry, session):
                    self._begin(entry, target)

    def listed(self, row: Session) -> None:
        """A session was in a list; entries that name it play in it."""
        for entry in self._agent.scenario.schedule:
            if entry.event == "session_listed" and (entry.session == "current" or glob(entry.session, row.id)):
                self._begin(entry, row)

    def _targets(self, entry: model.Scheduled, session: Session | None) -> Sequence[Session]:
        """Where an entry plays: in the session of the event, in another one, or in several."""
        if entry.session == "current":
            return () if session is None else (session,)
        sessions = self._agent.world.sessions
        if "*" in entry.session:
            return [other for other in islice(sessions.each(), GLOB_LIMIT) if glob(entry.session, other.id)]
        found = sessions.get(entry.session)
        if found is None:
            why = f"there is no session {entry.session!r}"
            self._agent.note("skipped", None, schedule=str(entry.place), why=why)
            return ()
        return (found,)

    def _begin(self, entry: model.Scheduled, target: Session) -> None:
        key = (id(entry), target.id)
        playing = self._once.get(key)
        if playing is not None and not playing.done:
            return
        times = entry.times if entry.times is not None else (None if entry.every is not None else 1)
        body = model.Repeat(times=times, every=entry.every or 0, steps=entry.steps)
        steps = (model.Step(verb="repeat", payload=body, after=entry.after, when=entry.when, place=entry.place),)
        run = self._agent.play(target, steps, origin="schedule")
        if entry.every is not None or entry.event == "session_listed":
            self._once[key] = run
            run.on_done = partial(self._end, key)

    def _end(self, key: tuple[int, str]) -> None:
        self._once.pop(key, None)

    def clear(self) -> None:
        """Nothing is remembered of what has begun."""
        self._once.clear()
