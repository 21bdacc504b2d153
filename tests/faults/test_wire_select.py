"""Which messages a fault meets: kinds of both protocols, conditions, counters and chances, seen from the client."""

from __future__ import annotations

from typing import Any

import pytest

from mockagent.scenario.load import load_text
from tests.faults.wire import CWD, Client, kinds, said, serving

TALK = "sessions: {auto_title: null}\nturns: [{steps: [{say: a}, {say: b}, {say: c}, {say: d}]}]\n"


async def doubled(client: Client, session: str, text: str = "go") -> str:
    """The chunks of a turn in one word."""
    return "".join(said(await client.turn(session, text)))


async def test_a_neutral_kind_means_both_protocols() -> None:
    faults = """
faults:
  - {at: create, error: overloaded, when: {nth: [1, 2], per: process}}
  - {at: think, drop: true}
  - {at: tool, copies: 2}
"""
    turns = "turns: [{steps: [{think: hm}, {tool: {name: look, output: x}}, {say: a}]}]\n"
    async with serving(turns + faults) as server:
        client = await server.client()
        await client.initialize()
        assert "error" in await client.call("session/new", cwd=CWD, mcpServers=[])
        aap = await server.aap()
        assert (await aap.call("POST", "/sessions", {"agent": {"name": "mock-agent"}})).status == 503
        messages = await client.turn(await client.new())
        assert kinds(messages) == ["tool_call"] * 2 + ["tool_call_update"] * 2 + ["agent_message_chunk", "result"]
        reply = await aap.turn(await aap.new())
        names = [name for name, _ in reply.events]
        assert names == [
            "turn_start",
            "tool_call",
            "tool_call",
            "tool_result",
            "tool_result",
            "text_delta",
            "turn_stop",
        ]


@pytest.mark.parametrize(
    ("when", "first", "second"),
    [
        ("nth: 2", "abbcd", "abcd"),
        ("nth: [1, 4]", "aabcdd", "abcd"),
        ("nth: 3..", "abccdd", "aabbccdd"),
        ("nth: 3..5", "abccdd", "aabcd"),
        ("every: 3", "abccd", "abbcd"),
        ("times: 5", "aabbccdd", "aabcd"),
        ("every: 2, times: 3", "abbcdd", "abbcd"),
        ("turn: 2", "abcd", "aabbccdd"),
        ("chance: 1", "aabbccdd", "aabbccdd"),
        ("chance: 0", "abcd", "abcd"),
    ],
)
async def test_counters_of_a_session(when: str, first: str, second: str) -> None:
    async with serving(TALK + f"faults: [{{at: say, when: {{{when}}}, copies: 2}}]") as server:
        client = await server.client()
        session, other = await client.new(), await client.new()
        assert await doubled(client, session) == first
        assert await doubled(client, session) == second
        assert await doubled(client, other) == first, "each session is counted by itself"


@pytest.mark.parametrize(
    ("per", "got"),
    [
        ("session", ["aabcd"] * 4),
        ("connection", ["aabcd", "abcd", "aabcd", "abcd"]),
        ("process", ["aabcd", *["abcd"] * 3]),
    ],
)
async def test_what_is_counted_over(per: str, got: list[str]) -> None:
    async with serving(TALK + f"faults: [{{at: say, when: {{nth: 1, per: {per}}}, copies: 2}}]") as server:
        seen = []
        for client in (await server.client(), await server.client()):
            for _ in range(2):
                seen.append(await doubled(client, await client.new()))
        assert seen == got


async def test_messages_of_no_session_are_counted_over_the_process_replies_that_make_one_too() -> None:
    faults = """
faults:
  - {at: session/list, when: {nth: 2}, error: invalid_cursor}
  - {at: "reply:session/new", when: {nth: 2}, error: overloaded}
"""
    async with serving(faults) as server:
        one, two = await server.client(), await server.client()
        await one.initialize()
        await two.initialize()
        assert kinds([await client.call("session/list") for client in (one, two, one)]) == [
            "result",
            "error: -32602",
            "result",
        ]
        made = [await client.call("session/new", cwd=CWD, mcpServers=[]) for client in (one, two, one)]
        assert kinds(made) == ["result", "error: -32603", "result"]


async def test_chances_come_from_the_seed_and_each_session_has_its_own() -> None:
    async def play(seed: int) -> list[str]:
        scenario = f"seed: {seed}\n{TALK}faults: [{{at: say, when: {{chance: 0.5}}, copies: 2}}]"
        async with serving(scenario) as server:
            client = await server.client()
            first, second = await client.new(), await client.new()
            order = (first, second, first) if seed else (first, first, second)
            return [await doubled(client, session) for session in order]

    assert await play(7) == await play(7)
    outcomes = [tuple(await play(seed)) for seed in (1, 2, 3)]
    assert len(set(outcomes)) > 1


async def test_what_others_do_does_not_move_the_chances_of_a_session() -> None:
    scenario = f"seed: 3\n{TALK}faults: [{{at: say, when: {{chance: 0.5}}, copies: 2}}]"
    async with serving(scenario) as server:
        client = await server.client()
        alone = [await doubled(client, await client.new()) for _ in range(2)]
    async with serving(scenario) as server:
        client = await server.client()
        first, second = await client.new(), await client.new()
        assert [await doubled(client, second), await doubled(client, first)] == alone[::-1]


WHENS = [
    ("prompt: '*rain*'", "in the RAIN", "sun"),
    ("prompt: '/r(ai)n/'", "rain", "RAIN"),
    ("command: plan", "/plan it", "plan it"),
    ("params: {/update/content/text: b}", None, None),
    ("origin: turn", "x", None),
    ("origin: [schedule, replay]", None, "x"),
    ("running: true", "x", None),
    ("protocol: acp", "x", None),
    ("protocol: aap", None, "x"),
    ("transport: ws", "x", None),
    ("transport: [stdio]", None, None),
    ("session: 'sess_*'", "x", None),
    ("session: other", None, "x"),
    ("mode: ask", "x", None),
    ("mode: code", None, "x"),
    ("option: {model: fast}", "x", None),
    ("option: {model: slow}", None, "x"),
    ("last_stop: end_turn", None, "x"),
]


@pytest.mark.parametrize(("when", "yes", "no"), [row for row in WHENS if not (row[1] is None and row[2] is None)])
async def test_conditions(when: str, yes: str | None, no: str | None) -> None:
    agent = """
agent:
  modes: [{id: ask}, {id: code}]
  options: [{id: model, type: select, value: fast, choices: [fast, slow]}]
"""
    async with serving(agent + TALK + f"faults: [{{at: say, when: {{{when}}}, copies: 2}}]") as server:
        client = await server.client()
        if yes is not None:
            assert await doubled(client, await client.new(), yes) == "aabbccdd"
        if no is not None:
            assert await doubled(client, await client.new(), no) == "abcd"


async def test_conditions_on_params_results_and_the_turn_before() -> None:
    faults = """
faults:
  - {at: create, when: {params: {/cwd: "/tmp/*"}}, error: internal_error}
  - {at: stop, when: {result: {/stopReason: end_turn}}, edit: {set: /result/stopReason, to: refusal}}
  - {at: say, when: {params: {/update/content/text: "[bc]"}}, drop: true}
  - {at: say, when: {params: {/update/content/text: c}}, drop: true}
  - {at: say, when: {last_stop: end_turn}, copies: 2}
"""
    async with serving(TALK + faults) as server:
        client = await server.client()
        await client.initialize()
        made = [await client.call("session/new", cwd=cwd, mcpServers=[]) for cwd in ("/tmp/x", "/home")]
        assert kinds(made) == ["error: -32603", "result"]
        session = made[1]["result"]["sessionId"]
        messages = await client.turn(session)
        assert messages[-1]["result"] == {"stopReason": "refusal"}
        assert "".join(said(messages)) == "abd"
        assert await doubled(client, session) == "aabbdd"


async def test_a_when_with_an_unset_placeholder_is_false_and_noted() -> None:
    scenario = """
faults:
  - {at: say, when: {params: {/update/content/text: "${saved.x}"}}, copies: 2}
  - {at: _own, save: {x: /id}}
"""
    async with serving(TALK + scenario) as server:
        client = await server.client()
        assert await doubled(client, await client.new()) == "abcd"
        assert server.seen.skipped == ["skipped: ${saved.x} has no value here"] * 4


async def test_an_http_method_and_path_with_a_glob() -> None:
    faults = """
faults:
  - {at: "GET /sessions/*/history", error: session_not_found}
  - {at: "DELETE /sessions/*", error: overloaded}
"""
    async with serving("sessions: {stored: [{id: 'a/b ?'}]}\n" + faults) as server:
        aap = await server.aap()
        path = "/sessions/a%2Fb%20%3F"
        assert (await aap.call("GET", path)).status == 200
        assert (await aap.call("GET", path + "/history?type=full")).status == 404
        assert (await aap.call("DELETE", path)).status == 503


# --- several scenarios


async def test_the_faults_of_one_agent_do_not_meet_the_sessions_of_another() -> None:
    two = "name: two\nagent: {name: two}\n" + TALK
    one = TALK + "faults: [{at: say, copies: 2}]\n"
    async with serving(one, two) as server:
        first, second = await server.client(), await server.client("/acp/two")
        assert await doubled(first, await first.new()) == "aabbccdd"
        assert await doubled(second, await second.new()) == "abcd"


# --- at run time


def fault(text: str) -> Any:
    """One fault, as a file has it."""
    [made] = load_text(f"legality: violation\nfaults: [{text}]").faults
    return made


async def test_a_fault_that_is_armed_in_the_middle_of_a_turn_fires_from_there_on() -> None:
    turns = "turns: [{steps: [{say: a}, {wait_for: {method: session/list}}, {say: b}, {say: c}]}]\n"
    async with serving("sessions: {auto_title: null}\n" + turns, armed=True) as server:
        client = await server.client()
        session = await client.new()
        id = await client.prompt(session)
        assert said([await client.next()]) == ["a"]
        armed = server.host.arm(fault("{at: say, when: {nth: 2}, copies: 3}"))
        await client.request("session/list")
        await client.reply(id)
        assert said(client.seen) == ["a", "b", "c", "c", "c"]
        assert server.host.disarm(armed)
        before = len(client.seen)
        id = await client.prompt(session)
        await client.next()
        await client.request("session/list")
        await client.reply(id)
        assert said(client.seen[before:]) == ["a", "b", "c"]


async def test_a_fault_that_is_armed_while_its_request_is_answered_meets_the_reply() -> None:
    turns = "turns: [{steps: [{say: a}, {wait_for: {method: session/list}}]}]\n"
    async with serving(turns, armed=True) as server:
        client, aap = await server.client(), await server.aap()
        id = await client.prompt(await client.new())
        await client.next()
        session = await aap.new()
        await aap.begin(session)
        await aap.raw.until(b'"a"}')
        server.host.arm(fault("{at: stop, disconnect: reset, drop: true}"))
        server.host.arm(fault("{at: list, error: busy}"))
        assert (await client.call("session/list"))["error"]["code"] == -32600
        assert await client.reply(id) is None
        assert client.raw.ended is not None
        assert {("list", "session/list"), ("stop", "reply:session/prompt")} <= set(server.seen.fired)


# --- the fast path


@pytest.mark.parametrize(
    ("faults", "armed", "fast"),
    [
        ("", False, True),
        ("", True, True),
        ("faults: [{at: session/list, error: busy}]", False, True),
        ("faults: [{at: list, newline: crlf, rate: 1KB/s, delay: 1s}]", False, True),
        ("faults: [{at: create, split: {parts: 2}}]", False, True),
        ("faults: [{at: 'update:tool_call', drop: true}, {at: stop, copies: 2}]", False, True),
        ("faults: [{at: turn_ended, stderr: x}]", False, True),
        ("faults: [{at: turn, newline: crlf}]", False, False),
        ("faults: [{at: say, when: {nth: 9999999}, drop: true}]", False, False),
    ],
)
async def test_text_that_no_fault_watches_leaves_in_bursts(faults: str, armed: bool, fast: bool) -> None:
    pace = "pace: {chunk: 1}\nsessions: {auto_title: null}\nturns: [{steps: [{say: '${filler.500}'}]}]\n"
    async with serving(pace + faults, armed=armed) as server:
        client = await server.client()
        assert len(said(await client.turn(await client.new()))) == 500
        assert (server.seen.bursts > 0) is fast
        aap = await server.aap()
        before = server.seen.bursts
        reply = await aap.turn(await aap.new())
        assert len(reply.told) == 500
        assert (server.seen.bursts > before) is fast
