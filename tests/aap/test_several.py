"""Several scenarios on one server: one list, the first one's rules for it, and faults that keep to their own agent."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockagent.aap.roster import Roster
from mockagent.errors import Refusal
from mockagent.scenario.load import load_text
from mockagent.script.agent import Agent
from mockagent.script.stage import Stage
from mockagent.world.clock import Clock
from mockagent.world.cursors import NOBODY
from mockagent.world.world import World
from tests.network import serving


def agent(name, *ids, sessions="", rest=""):
    stored = json.dumps([{"id": id} for id in ids])
    return load_text(
        f"name: {name}\nclock: {{now: '2026-01-15T09:00:00Z', speed: 0}}\nagent: {{name: {name}}}\n"
        f"sessions: {{stored: {stored}{sessions}}}\nturns: [{{steps: [{{say: I am {name}}}]}}]\n{rest}"
    )


def roster(*scenarios):
    clock = Clock(scenarios[0].clock, monotonic=lambda: 0.0)
    stage = Stage(clock)
    worlds = [World(scenario, clock) for scenario in scenarios]
    return Roster([Agent(world, stage, note=lambda *_, **__: None, complain=print) for world in worlds])


def pages(several):
    found, after = [], None
    while True:
        rows, after = several.page(several.members, after, NOBODY)
        found.append([row.id for _, row in rows])
        if after is None:
            return found


async def create(server, name):
    return await server.http.post("/sessions", json={"agent": {"name": name}})


@given(counts=st.lists(st.integers(0, 5), min_size=2, max_size=4), size=st.integers(1, 6))
def test_each_session_is_on_one_page_and_only_the_last_page_is_not_full(counts, size):
    ids = [[f"{number}-{index}" for index in range(count)] for number, count in enumerate(counts)]
    sessions = f", page_size: {size}"
    found = pages(roster(*(agent(f"a{number}", *some, sessions=sessions) for number, some in enumerate(ids))))
    assert [id for page in found for id in page] == [id for some in ids for id in some]
    assert [len(page) for page in found[:-1]] == [size] * (len(found) - 1)
    assert found[-1] or found == [[]]


def test_the_length_of_a_page_is_the_first_ones():
    several = roster(agent("one", "a", sessions=", page_size: 2"), agent("two", "b", "c", sessions=", page_size: 9"))
    assert pages(several) == [["a", "b"], ["c"]]


def test_the_life_of_a_cursor_is_the_first_ones():
    rules = ", page_size: 1, cursor: {uses: 1}"
    several = roster(agent("one", "a", sessions=rules), agent("two", "b", "c"))
    _, first = several.page(several.members, None, NOBODY)
    _, second = several.page(several.members, first, NOBODY)
    for used in (first, second):
        several.page(several.members, second, NOBODY) if used is second else None
        with pytest.raises(Refusal) as refused:
            several.page(several.members, used, NOBODY)
        assert refused.value.data["why"] == "used_up"


@pytest.mark.parametrize("change", [lambda text: "0" + text[1:], lambda text: "9" + text[1:], lambda text: text[2:]])
def test_a_cursor_is_good_for_its_own_place_only(change):
    one, two = agent("one", "a", "b", sessions=", page_size: 1"), agent("two", "c", "d")
    several = roster(one, two)
    cursor = None
    while not (cursor or "").startswith("1"):
        _, cursor = several.page(several.members, cursor, NOBODY)
    assert several.page(several.members, cursor, NOBODY)
    with pytest.raises(Refusal):
        several.page(several.members, change(cursor), NOBODY)


async def test_an_id_that_two_agents_have_leads_to_the_first_and_is_listed_once(serve, capsys):
    server = await serve(agent("one", "same"), agent("two", "same", "other"))
    rows = (await server.http.get("/sessions")).json()["sessions"]
    assert [(row["agent"]["name"], row["sessionId"]) for row in rows] == [("one", "same"), ("two", "other")]
    assert (await server.turn("same", "hi")).json()["messages"][0]["content"] == "I am one"
    assert "same" in capsys.readouterr().err


async def test_what_is_invented_differs_from_agent_to_agent(serve):
    invented = ", synthetic: {count: 3}"
    server = await serve(agent("one", sessions=invented), agent("two", sessions=invented))
    rows = (await server.http.get("/sessions")).json()["sessions"]
    assert len({row["sessionId"] for row in rows}) == 6


async def test_faults_keep_to_the_sessions_of_their_own_agent(serve):
    faults = "faults: [{at: create, error: overloaded}, {at: turn, error: rate_limited}]"
    server = await serve(agent("one", "a"), agent("two", "b", rest=faults))
    assert (await create(server, "one")).status_code == 201
    assert (await create(server, "two")).status_code == 503
    assert (await server.turn("a", "hi")).status_code == 200
    assert (await server.turn("b", "hi")).status_code == 429


async def test_faults_on_what_all_agents_share_are_the_first_ones(serve):
    named = (
        "faults: [{{at: GET /meta, edit: [{{set: /title, to: {0}}}]}}, {{at: list, rows: [{{set: {{from: {0}}}}}]}}]"
    )
    one, two = (agent(name, name, rest=named.format(name)) for name in ("one", "two"))
    server = await serve(one, two)
    assert (await server.http.get("/meta")).json()["title"] == "one"
    assert {row["from"] for row in (await server.http.get("/sessions")).json()["sessions"]} == {"one"}


async def test_faults_over_acp_act_on_the_connections_to_their_own_agent():
    faults = "faults: [{at: list, result: {sessions: [], nextCursor: 'from two'}}]"
    async with serving(agent("one"), agent("two", rest=faults)) as mock:
        for path, cursor in (("/acp", None), ("/acp/two", "from two")):
            async with mock.ws(path) as client:
                await client.greet()
                assert (await client.call("session/list"))["result"].get("nextCursor") == cursor
