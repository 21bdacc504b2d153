"""Sessions: what is there at the start, what is made, what changes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from mockagent.errors import Refusal
from mockagent.scenario import model
from mockagent.world.clock import SECOND, Clock
from mockagent.world.history import Called, History, Planned, Said
from mockagent.world.metadata import Refused
from mockagent.world.seeds import Seeds
from mockagent.world.sessions import Sessions
from mockagent.world.world import World

START = 1_768_467_600_000_000


def world_of(seed: int = 0, **sections: Any) -> World:
    scenario = model.Scenario(clock=model.ClockRules(now=START, speed=0), seed=seed, **sections)
    return World(scenario, Clock(scenario.clock))


def sessions_of(seed: int = 0, **sections: Any) -> Sessions:
    return world_of(seed, **sections).sessions


def test_the_nth_session_has_the_same_id_in_every_run_of_a_seed() -> None:
    ids = [sessions_of(7).create().id for _ in range(3)]
    assert len(set(ids)) == 1
    assert sessions_of(8).create().id != ids[0]
    store = sessions_of(7)
    assert len({store.create().id for _ in range(50)}) == 50


def test_an_id_is_never_given_to_a_second_session() -> None:
    taken = sessions_of(7).create().id
    store = sessions_of(7, sessions=model.Sessions(stored=(model.Stored(id=taken),)))
    assert store.create().id != taken


def test_stored_sessions_are_listed_but_not_open() -> None:
    stored = model.Stored(id="s1", cwd="/a", title="T", updated_at=None, meta={"n": 1})
    store = sessions_of(sessions=model.Sessions(stored=(stored,)))
    found = store.get("s1")
    assert found is not None
    assert (found.state, found.title, found.updated_at, found.meta) == ("stored", "T", None, {"n": 1})
    assert [session.id for session in store.listed()] == ["s1"]


def test_the_list_has_the_last_active_first_and_can_be_one_directorys() -> None:
    store = sessions_of()
    one, two, three = store.create("/a"), store.create("/b"), store.create("/a")
    store.touch(two)
    store.touch(one)
    assert [session.id for session in store.listed()] == [one.id, two.id, three.id]
    assert [session.id for session in store.listed("/a/")] == [one.id, three.id]


def test_a_new_session_has_the_first_mode_and_the_options_as_they_stand() -> None:
    agent = model.Agent(
        modes=(model.Mode(id="ask", name="Ask"), model.Mode(id="code", name="Code")),
        options=(model.Option(id="brave", name="Brave", type="boolean", value=False),),
    )
    session = sessions_of(agent=agent).create()
    assert (session.mode, session.config) == ("ask", {"brave": False})


def test_activity_moves_updated_at() -> None:
    store = sessions_of()
    session = store.create()
    before = session.updated
    store.touch(session)
    assert before is not None
    assert session.updated is not None
    assert session.updated > before


def test_metadata_that_is_omitted_stays_and_null_clears() -> None:
    store = sessions_of()
    session = store.create()
    store.apply(session, model.InfoFields(title="T", meta={"a": {"b": 1}}))
    store.apply(session, model.InfoFields(meta={"a": {"c": 2}}))
    assert (session.title, session.meta) == ("T", {"a": {"b": 1, "c": 2}})
    store.apply(session, model.InfoFields(title=None, meta=None, updated_at=None))
    assert (session.title, session.meta, session.updated_at) == (None, None, None)


def test_a_given_time_of_activity_orders_the_list() -> None:
    store = sessions_of()
    one, two = store.create(), store.create()
    store.apply(one, model.InfoFields(updated_at="2030-01-01T00:00:00Z"))
    store.apply(two, model.InfoFields(updated_at="2029-01-01T00:00:00+02:00"))
    assert one.updated_at == "2030-01-01T00:00:00.000Z"
    assert two.updated_at == "2028-12-31T22:00:00.000Z"
    assert [session.id for session in store.listed()] == [one.id, two.id]


def test_a_title_over_the_limit_is_refused_or_forced() -> None:
    store = sessions_of(sessions=model.Sessions(title_limit=model.TitleLimit(length=3, then="refuse")))
    session = store.create()
    with pytest.raises(Refused):
        store.apply(session, model.InfoFields(title="long"))
    assert session.title is None
    store.apply(session, model.InfoFields(title="long", force=True))
    assert session.title == "long"


def test_a_deleted_session_is_gone_for_good() -> None:
    store = sessions_of()
    session = store.create()
    store.delete(session)
    assert store.get(session.id) is None
    assert session.state == "deleted"
    assert list(store.listed()) == []


def test_a_cursor_that_was_never_given_is_refused() -> None:
    with pytest.raises(Refusal) as refused:
        sessions_of().page(None, "made up")
    assert refused.value.name == "invalid_cursor"


def test_pages_together_are_the_list() -> None:
    store = sessions_of(sessions=model.Sessions(page_size=3))
    for _ in range(8):
        store.create()
    seen: list[str] = []
    cursor: str | None = None
    sizes = []
    while True:
        rows, cursor = store.page(None, cursor)
        sizes.append(len(rows))
        seen += [row.id for row in rows]
        if cursor is None:
            break
    assert sizes == [3, 3, 2]
    assert seen == [session.id for session in store.listed()]


# --- seeds


def test_draws_for_one_purpose_move_no_other() -> None:
    lone, busy = Seeds(1), Seeds(1)
    busy.rng("waits", "s2").random()
    busy.rng("pace", "s1").random()
    assert lone.rng("waits", "s1").random() == busy.rng("waits", "s1").random()


def test_a_running_generator_goes_on_and_a_fresh_one_starts_again() -> None:
    seeds = Seeds(1)
    first = seeds.rng("x").random()
    assert seeds.rng("x").random() != first
    assert seeds.fresh("x").random() == first == seeds.fresh("x").random()


def test_a_session_that_is_forgotten_starts_anew() -> None:
    seeds = Seeds(1)
    first = seeds.rng("x", "s").random()
    seeds.forget("s")
    assert seeds.rng("x", "s").random() == first


# --- histories


def test_chunks_of_one_message_are_one_entry() -> None:
    history = History()
    history.say("say", ["a"], "m1")
    history.say("say", ["b"], "m1")
    history.say("say", ["c"], "m2")
    history.say("think", ["d"], "m2")
    assert [(entry.role, entry.parts) for entry in history.entries if isinstance(entry, Said)] == [
        ("say", ["a", "b"]),
        ("say", ["c"]),
        ("think", ["d"]),
    ]


def test_a_tool_call_keeps_its_latest_fields_and_its_result() -> None:
    history = History()
    history.call(Called(id="c1", name="grep", input={}, fields={"status": "pending"}))
    assert history.find("c1") is not None
    assert history.entries[0].open  # type: ignore[union-attr]
    history.update("c1", {"status": "completed"}, result="x")
    [entry] = history.entries
    assert isinstance(entry, Called)
    assert (entry.fields, entry.result, entry.open) == ({"status": "completed"}, "x", False)


def test_an_update_to_a_call_never_announced_is_kept() -> None:
    history = History()
    history.update("c9", {"status": "failed"}, denied="no")
    [entry] = history.entries
    assert isinstance(entry, Called)
    assert (entry.id, entry.denied, entry.result) == ("c9", "no", msgspec.UNSET)


def test_plans_stand_in_order() -> None:
    history = History()
    history.plan([1])
    history.plan([2])
    assert [entry.entries for entry in history.entries if isinstance(entry, Planned)] == [[1], [2]]


def test_the_seed_of_the_command_line_wins() -> None:
    scenario = model.Scenario(seed=1, clock=model.ClockRules(now=0))
    clock = Clock(scenario.clock)
    ids = {seed: World(scenario, clock, seed=seed).sessions.create().id for seed in (None, 1, 2)}
    assert ids[None] == ids[1] != ids[2]
    assert clock.now() == 0 * SECOND
