"""What can be asked of a mock that plays, and told to it: the one list of controls behind HTTP and the test API.

Works on a host, in its event loop. Parts of scenarios come in as values of the model (`control.spec` makes them).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import trio

from mockagent import __version__
from mockagent.message import NETWORK
from mockagent.scenario import model
from mockagent.scenario.problems import check_names
from mockagent.watch.entries import Entry
from mockagent.watch.memory import Memory, awaited
from mockagent.world.clock import SECOND

if TYPE_CHECKING:
    from mockagent.host import Host
    from mockagent.script.agent import Agent
    from mockagent.world.sessions import Session

SETTLE = 1.0
"""Seconds in which connections have to end, and what was queued has to leave, before everything begins anew. Network
connections that have not ended by then are reset."""

LAST = 253_370_764_800
"""The beginning of the year 9999, in seconds since the epoch. Times of day have no words for much more."""


class Desk:
    """The controls of one host.

    Args:
        host: one that was made to be controlled (`armed`).
    """

    def __init__(self, host: Host) -> None:
        self.host = host
        self._resetting = trio.Lock()

    @property
    def memory(self) -> Memory:
        """The journal."""
        assert self.host.memory is not None
        return self.host.memory

    async def sync(self) -> None:
        """Returns when everything that has happened so far is in the journal."""

    # --- asking

    async def health(self) -> dict[str, Any]:
        """That it is there, what it plays, and how far it is."""
        return {
            "status": "ok",
            "version": __version__,
            "scenario": self.host.scenarios[0].name,
            "agents": [scenario.name for scenario in self.host.scenarios],
            "now": self.host.clock.iso(),
            "connections": len(self.host.backstage.connections),
            "journal": self.memory.last,
        }

    async def sessions(self) -> list[dict[str, Any]]:
        """All sessions, the last active first, agent by agent."""
        return self.rows()

    def rows(self) -> list[dict[str, Any]]:
        """The same, of this process."""
        return [_row(agent, session) for agent in self.host.agents for session in agent.world.sessions.listed()]

    async def report(self) -> dict[str, Any]:
        """The verdict on the client, with its `text` for people."""
        await self.sync()
        return self.host.report.as_json() | {"text": self.host.report.text()}

    async def wait_for(self, method: str, timeout: float, since: int = 0) -> Entry:  # noqa: ASYNC109
        """Waits until the client has sent a message of a kind, or an event of that name has happened.

        Args:
            method: as in `Memory.requests`.
            timeout: seconds.
            since: number of a line; earlier ones do not count.

        Raises:
            TimeoutError: nothing came; the text says what did.
        """
        await self.sync()
        seen = trio.Event()
        found = [entry for entry in self.memory.since(since) if awaited(entry, method)]

        def look(entry: Entry) -> None:
            if awaited(entry, method):
                found.append(entry)
                seen.set()

        end = self.memory.subscribe(look)
        try:
            if not found:
                with trio.move_on_after(timeout):
                    await seen.wait()
        finally:
            end()
        if not found:
            raise self.memory.missing(method, timeout, since)
        return found[0]

    # --- telling

    async def push(self, session: str, steps: Sequence[model.Step]) -> None:
        """Plays steps in a session, to whoever has it open.

        Raises:
            LookupError: there is no such session.
        """
        if not self.push_here(session, steps):
            raise await self._no_session(session)

    def push_here(self, session: str, steps: Sequence[model.Step]) -> bool:
        """The same; False: there is no such session."""
        agent, found = self.host.backstage.find(session)
        if agent is None or found is None:
            return False
        agent.play(found, steps, origin="control", at_once=True)
        self.host.stage.pump()
        return True

    async def _no_session(self, id: str) -> LookupError:
        there = [str(row["id"]) for row in await self.sessions()]
        known = ", ".join(there[:20]) + (", ..." if len(there) > 20 else "") if there else "none yet"
        return LookupError(f"there is no session {id!r}; there are: {known}")

    async def arm(self, fault: model.Fault) -> str:
        """Arms a fault behind all others; returns its id."""
        return self.host.arm(fault)

    async def disarm(self, id: str | None = None) -> bool:
        """Takes out a fault that `arm` has put in, or all of those. False: there was none."""
        return self.host.disarm(id)

    def armed(self) -> list[dict[str, Any]]:
        """The faults that are armed now, those of the scenarios first (they have no id)."""
        ids = {id(fault): name for name, fault in self.host.armed.items()}
        return [
            {"id": ids.get(id(fault)), "at": fault.at, "effects": sorted(fault.effects), "place": str(fault.place)}
            for fault in self.host.engine.armed
        ]

    async def advance(self, seconds: float) -> None:
        """Moves logical time on; all that becomes due on the way happens, in order.

        Raises:
            ValueError: time does not go back.
        """
        self.advance_here(seconds)

    def advance_here(self, seconds: float) -> None:
        """The same, in this process."""
        if not seconds >= 0 or seconds == float("inf"):
            raise ValueError(f"advance: this has to be a number of seconds from 0 on, not {seconds}")
        if self.host.clock.now() / SECOND + seconds > LAST:
            raise ValueError(f"advance: {seconds} seconds lead beyond the year 9998, where times cannot be written")
        self.host.stage.advance(seconds)

    async def reset(self, scenario: model.Scenario | None = None, agent: str | None = None) -> None:
        """Everything as it was at the start: sessions, turns, counts, faults, clock, journal and verdict.

        Network connections are closed, and those whose clients do not read any more are reset. The one connection over
        stdio stays, with no session open.

        Args:
            scenario: is played from now on.
            agent: name of the scenario that it takes the place of; None: the first.

        Raises:
            LookupError: there is no such agent.
            ScenarioError: another agent has the scenario's name.
            ValueError: the sessions are kept in a state file, which is there to outlive everything.
        """
        host = self.host
        async with self._resetting:
            scenarios = self._with(scenario, agent)
            if host.store is not None:
                raise ValueError(
                    f"the sessions are kept in {host.store.path}; to begin anew, start with another state file"
                )
            host.backstage.shut()
            try:
                host.halt()
                await self._settle()
                host.restart(scenarios)
            finally:
                host.backstage.reopen()

    async def _settle(self) -> None:
        """Returns when those who stay have been told what was said to them, and all others are gone."""
        backstage = self.host.backstage
        lines = [out.line(None) for out in backstage.connections.values() if out.peer.transport not in NETWORK]
        async with trio.open_nursery() as nursery:
            for part in list(backstage.partings):
                nursery.start_soon(part, SETTLE)
            with trio.move_on_after(SETTLE):
                for line in lines:
                    await line.drained()

    def _with(self, scenario: model.Scenario | None, agent: str | None) -> list[model.Scenario]:
        scenarios = list(self.host.scenarios)
        names = [entry.name for entry in scenarios]
        if agent is not None and agent not in names:
            raise LookupError(f"there is no agent {agent!r}; there are: {', '.join(names)}")
        if scenario is not None:
            scenarios[names.index(agent) if agent is not None else 0] = scenario
            check_names(scenarios)
        return scenarios


def _row(agent: Agent, session: Session) -> dict[str, Any]:
    return {
        "id": session.id,
        "agent": agent.scenario.name,
        "title": session.title,
        "cwd": session.cwd,
        "state": session.state,
        "updatedAt": session.updated_at,
        "turns": session.turns,
        "running": agent.running(session),
        "mode": session.mode,
        "meta": session.meta,
    }
