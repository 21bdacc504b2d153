"""Whether a condition (`when`) of the scenario holds where a run stands: what it sees there, and what it counts.

How the keys of a condition are compared is `match`'s business; nothing here plays anything.
"""

from __future__ import annotations

from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from mockagent.scenario import model
from mockagent.script.match import Counters, Match, command_of, matches
from mockagent.script.output import Answer
from mockagent.script.placeholders import Unset, fill_text
from mockagent.world.sessions import Session

if TYPE_CHECKING:
    from mockagent.script.agent import Agent
    from mockagent.script.run import Run


class Conditions:
    """Those of one agent.

    Args:
        agent: whose sessions, clients and chances they look at.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._counters = Counters()

    def clear(self) -> None:
        """Nothing has been counted yet."""
        self._counters = Counters()

    def facts(self, session: Session | None) -> dict[str, Any]:
        """What conditions see of a session."""
        if session is None:
            return {}
        return {
            "prompt": session.prompt,
            "command": command_of(session.prompt),
            "turn": session.turns,
            "session": session.id,
            "mode": session.mode,
            "option": session.config,
            "running": self._agent.running(session),
            "last_stop": session.last_stop,
        }

    def match(
        self, when: model.When, run: Run, *, answer: Answer | None = None, text: str | None = None
    ) -> Match | None:
        """Whether a condition holds in a run; the match carries the groups of a regex.

        Args:
            when: the condition.
            run: where.
            answer: of the client, for the conditions that look at one.
            text: its words.
        """
        facts = self.facts(run.session) | self._hearer(run) | run.facts
        facts["prompt"] = run.scope.prompt
        facts["origin"] = run.origin
        facts["fill"] = partial(fill_text, scope=run.scope)
        if run.origin == "turn":
            facts["running"] = run.running
        if answer is not None:
            facts["outcome"] = (answer.outcome,) if answer.option is None else (answer.outcome, answer.option)
            facts["text"] = text or ""
            facts["result"] = answer.value
        chance = partial(self._chance, run.session)
        return matches(when, facts, self._counters, chance, unset=partial(self._unset, run))

    def holds(self, when: model.When, run: Run, *, answer: Answer | None = None, text: str | None = None) -> bool:
        """Whether a condition holds in a run; one that is played again holds where it did."""
        return bool(run.tell(lambda: self.match(when, run, answer=answer, text=text) is not None))

    def _hearer(self, run: Run) -> dict[str, Any]:
        """What conditions see of the one who hears a run: outside of turns, whoever opened the session last."""
        peer = run.out.peer if run.out is not None else None
        if peer is None:
            peer = self._agent.presence.last(run.session)
        return {} if peer is None else {"protocol": peer.protocol, "transport": peer.transport, "connection": peer.id}

    def _chance(self, session: Session, purpose: str) -> Random:
        return self._agent.rng(purpose, session)

    def _unset(self, run: Run, missing: Unset) -> None:
        self._agent.note("when_false", run.session.id, why=str(missing))
