"""The world that a scenario describes: its clock, its chances, its sessions."""

from __future__ import annotations

from mockagent.scenario.model import Micros, Scenario
from mockagent.world.clock import Clock
from mockagent.world.ids import Ids
from mockagent.world.seeds import Seeds
from mockagent.world.sessions import Sessions


class World:
    """Everything that outlives a connection.

    Args:
        scenario: what to play.
        clock: shared by all worlds of one process.
        seed: in place of the scenario's own.
        ids: gives ids for new sessions; shared by the worlds of one process, so that no two sessions have one id.
        born: scenario time of the sessions that are there at the start; None: now.

    Attributes:
        logged_in: the user has logged in elsewhere (a login in a terminal that was kept), so nobody has to here.
    """

    def __init__(
        self,
        scenario: Scenario,
        clock: Clock,
        *,
        seed: int | None = None,
        ids: Ids | None = None,
        born: Micros | None = None,
    ) -> None:
        self.scenario = scenario
        self.clock = clock
        self.logged_in = False
        self.seeds = Seeds(scenario.seed if seed is None else seed)
        self.sessions = Sessions(scenario, clock, self.seeds, ids or Ids(self.seeds.rng("session ids")), born=born)
