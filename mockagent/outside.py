"""What the engine of faults asks of the process around it: whose a thing is, what is known of it, who is to hear of it.

It knows the agents and their sessions, and both protocols' prompts; when a fault fires is the engine's business, and
what a process consists of is the host's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mockagent.faults.engine import Engine
from mockagent.faults.outside import Spot
from mockagent.message import Message, Peer
from mockagent.scenario import model
from mockagent.script.agent import Agent
from mockagent.script.placeholders import Scope, fill
from mockagent.watch.tap import Taps
from mockagent.world.sessions import Session

if TYPE_CHECKING:
    from mockagent.faults.chaos import Chaos

Find = Callable[["str | None"], "tuple[Agent, Session] | tuple[None, None]"]
"""The session of an id, and whose it is."""


class Outside:
    """The outside of one engine.

    Args:
        agents: all of the process; what is nobody's is the first one's.
        find: finds sessions.
        taps: hear of every fault that fires, or that would have and could not.
        hears: called with such a fault.
    """

    def __init__(self, agents: Sequence[Agent], find: Find, taps: Taps, hears: Callable[[model.Fault], None]) -> None:
        self._agents = agents
        self._find = find
        self._taps = taps
        self._hears = hears

    def engine(self, faults: Sequence[model.Fault], chaos: str | None) -> Engine:
        """An engine for these faults.

        Args:
            faults: in the order in which they fire.
            chaos: faults that are drawn by chance beside them, as `Options.chaos` has it; None: none.
        """
        return Engine(
            faults,
            facts=self._facts,
            rng=self._agents[0].world.seeds.rng,
            fill=self._fill,
            report=self._report,
            save=self._save,
            belongs=self._belongs,
            chaos=None if chaos is None else self._chaos(chaos),
        )

    def _chaos(self, wanted: str) -> Chaos:
        from mockagent.faults.chaos import Chaos, parse

        return Chaos(parse(wanted), self._agents[0].world.seeds.fresh)

    def _owner(self, spot: Spot) -> Agent:
        """The agent whose connection or session it is, the first one for what is nobody's."""
        told = spot.peer.agent if spot.peer is not None else None
        if told is None and spot.message is not None:
            told = spot.message.agent
        if told is not None:
            return self._agents[told]
        agent, _ = self._find(spot.session)
        return agent or self._agents[0]

    def _belongs(self, fault: model.Fault, spot: Spot) -> bool:
        """Whether a fault looks at something: with several scenarios, each one's faults act on its own agent's sessions
        and connections, and those of the first on what is nobody's. Faults armed at run time look at everything."""
        if len(self._agents) == 1:
            return True
        for agent in self._agents:
            if any(fault is own for own in agent.scenario.faults):
                return self._owner(spot) is agent
        return True

    def _facts(self, session: str | None, message: Message | None) -> Mapping[str, Any]:
        agent, found = self._find(session)
        facts = (agent or self._agents[0]).conditions.facts(found)
        if message is not None and message.neutral == "turn":
            facts |= self._facts_of_prompt(message)
            facts["turn"] = found.turns + 1 if found is not None else 1
        return facts

    def _facts_of_prompt(self, message: Message) -> Mapping[str, Any]:
        """What a prompt says that has just come in, and has not reached its handler."""
        if message.peer.protocol == "acp":
            from mockagent.acp import prompts as acp

            return acp.facts(message)
        from mockagent.aap import prompts as aap

        return aap.facts(message)

    def _fill(self, value: Any, spot: Spot) -> Any:
        agent, session = self._find(spot.session)
        scope = Scope(
            (agent or self._agents[0]).world,
            session,
            prompt=session.prompt if session is not None else None,
            groups=spot.groups,
            message=spot.message.data if spot.message is not None else None,
            saved=spot.peer.saved if spot.peer is not None else None,
            value=spot.old,
        )
        return fill(value, scope)

    def _report(
        self, fault: model.Fault, subject: Message | str, effects: tuple[str, ...], what: str, spot: Spot
    ) -> None:
        from mockagent.faults.written import written

        self._taps.note(
            "fault",
            spot.peer,
            spot.session,
            at=fault.at,
            place=str(fault.place),
            effects=list(effects),
            what=what,
            on=subject if isinstance(subject, str) else subject.kind,
            does=written(fault.effects),
            **({"nth": nth} if (nth := _drawn(fault)) is not None else {}),
            **({"shorthand": fault.shorthand} if fault.shorthand is not None else {}),
        )
        self._hears(fault)

    def _save(self, peer: Peer | None, session: str | None, name: str, value: Any) -> None:
        _, found = self._find(session)
        if found is not None:
            found.saved[name] = value
        elif peer is not None:
            peer.saved[name] = value


def _drawn(fault: model.Fault) -> int | None:
    """Which of its kind met a fault that chance has drawn; None: a scenario has written it."""
    nth = fault.when.nth if str(fault.place) == "chaos" and fault.when is not None else None
    return None if nth is None else min(nth.numbers)
