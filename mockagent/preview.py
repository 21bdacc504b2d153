"""What a client would see of a scenario's sessions, without one: for `mockagent sessions`.

Rows are made as `session/list` makes them. Faults stay out of it: they change answers, and here is nobody to answer.
"""

from __future__ import annotations

from typing import Any

import msgspec

from mockagent.scenario.model import Scenario
from mockagent.world.clock import Clock
from mockagent.world.world import World


class Preview(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One page of the list.

    Attributes:
        page: its number, from 1.
        pages: how many there are.
        total: how many sessions.
    """

    sessions: list[dict[str, Any]]
    page: int
    pages: int
    total: int


def preview(
    scenario: Scenario, *, cwd: str | None = None, page: int = 1, seed: int | None = None, state: str | None = None
) -> Preview:
    """One page of the list of a scenario's sessions.

    Args:
        scenario: whose.
        cwd: only sessions of this folder.
        page: its number, from 1.
        seed: in place of the scenario's.
        state: a state file, which has to be there.

    Raises:
        StateError: the state file cannot be used.
    """
    from mockagent.acp.render import session_info

    clock = Clock(scenario.clock)
    seed = scenario.seed if seed is None else seed
    if state is None:
        return _page(World(scenario, clock, seed=seed), cwd, page, session_info)
    from mockagent.world.storage import open_store

    store = open_store(state, [scenario], [seed], clock)
    try:
        world = World(scenario, clock, seed=seed, born=store.born)
        store.attach(0, world.sessions, scenario.agent)
        return _page(world, cwd, page, session_info)
    finally:
        store.close()


def _page(world: World, cwd: str | None, page: int, render: Any) -> Preview:
    sessions, size = world.sessions, world.scenario.sessions.page_size
    total = sessions.count(cwd)
    rows, _ = (
        sessions.page(cwd, sessions.cursor_at((page - 1) * size, cwd)) if (page - 1) * size < total else ([], None)
    )
    return Preview(
        sessions=[render(row, world.scenario.agent) for row in rows], page=page, pages=-(-total // size), total=total
    )
