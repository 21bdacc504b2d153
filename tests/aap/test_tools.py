"""Tools: inline, with permission, at the client, several at once, and how a parked turn goes on."""

from __future__ import annotations

import pytest

SEARCH = """
agent:
  tools: [{name: web_search, description: Search}, {name: read_file}]
turns:
  - steps:
      - tool: {name: web_search, input: {q: Osaka}, output: "18°C"}
      - say: Done.
"""
CALL = ("tool_call", {"toolCallId": "call_1", "name": "web_search", "input": {"q": "Osaka"}})
RESULT = ("tool_result", {"toolCallId": "call_1", "content": "18°C"})
USE = {"type": "tool_use", "toolCallId": "call_1", "name": "web_search", "input": {"q": "Osaka"}}
DONE = [("text_delta", {"delta": "Done."}), ("turn_stop", {"stopReason": "end_turn"})]
START: tuple = ("turn_start", {})
PARKED = ("turn_stop", {"stopReason": "tool_use"})


def enabled(*names, trust=False):
    return {"name": "mock-agent", "tools": [{"name": name, "trust": trust} for name in names]}


def permission(id, granted, **more):
    return {"role": "tool_permission", "toolCallId": id, "granted": granted} | more


def result(id, content):
    return {"role": "tool", "toolCallId": id, "content": content}


def declared(*names):
    schema = {"type": "object", "properties": {"city": {"type": "string", "enum": ["Osaka"]}}, "required": ["city"]}
    return [{"name": name, "description": "", "parameters": schema} for name in names]


async def test_a_trusted_tool_runs_inline(serve):
    server = await serve(SEARCH)
    session = await server.create(agent=enabled("web_search", trust=True))
    assert await server.events(session, "hi") == [START, CALL, RESULT, *DONE]


async def test_a_tool_that_is_not_enabled_is_not_called(serve):
    server = await serve(SEARCH)
    assert await server.events(await server.create(), "hi") == [START, *DONE]
    assert server.seen.noted("skipped")


async def test_a_tool_that_meta_does_not_list_runs_inline_without_being_enabled(serve):
    server = await serve("turns: [{steps: [{tool: {name: secret_tool, output: ok}}]}]")
    events = await server.events(await server.create(), "hi")
    assert [name for name, _ in events] == ["turn_start", "tool_call", "tool_result", "turn_stop"]


async def test_a_granted_tool_runs_in_the_next_request(serve):
    server = await serve(SEARCH)
    session = await server.create(agent=enabled("web_search"))
    assert await server.events(session, "hi") == [START, CALL, PARKED]
    assert (await server.history(session))[-1] == {"role": "assistant", "content": [USE]}
    assert await server.events(session, permission("call_1", True)) == [START, RESULT, *DONE]
    assert await server.history(session) == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [USE]},
        {"role": "tool", "toolCallId": "call_1", "content": "18°C"},
        {"role": "assistant", "content": "Done."},
    ]


@pytest.mark.parametrize(
    ("reason", "stored"), [({}, "Tool call denied"), ({"reason": "too risky"}, "Tool call denied: too risky")]
)
async def test_a_denied_tool_leaves_a_message_in_the_history_and_the_turn_goes_on(serve, reason, stored):
    server = await serve(SEARCH)
    session = await server.create(agent=enabled("web_search"))
    await server.events(session, "hi")
    assert await server.events(session, permission("call_1", False, **reason)) == [START, *DONE]
    assert (await server.history(session))[2] == {"role": "tool", "toolCallId": "call_1", "content": stored}


async def test_the_script_can_tell_what_the_client_decided(serve):
    server = await serve("""
agent: {tools: [{name: rm}]}
turns:
  - steps:
      - tool: {name: rm}
        then:
          - {when: {outcome: denied, text: "*never*"}, steps: [{say: As you wish}, {stop: refusal}]}
          - {steps: [{say: gone}]}
""")
    session = await server.create(agent=enabled("rm"))
    await server.events(session, "hi")
    events = await server.events(session, permission("call_1", False, reason="never ever"))
    assert events[1:] == [("text_delta", {"delta": "As you wish"}), ("turn_stop", {"stopReason": "refusal"})]


async def test_without_a_stream_the_answer_holds_the_whole_exchange(serve):
    server = await serve(SEARCH)
    message = {"role": "tool", "toolCallId": "call_1", "content": "18°C"}
    trusted = await server.create(agent=enabled("web_search", trust=True))
    assert (await server.turn(trusted, "hi")).json() == {
        "stopReason": "end_turn",
        "messages": [{"role": "assistant", "content": [USE]}, message, {"role": "assistant", "content": "Done."}],
    }
    asked = await server.create(agent=enabled("web_search"))
    first = (await server.turn(asked, "hi")).json()
    assert first == {"stopReason": "tool_use", "messages": [{"role": "assistant", "content": [USE]}]}
    second = (await server.turn(asked, permission("call_1", True))).json()
    assert second == {"stopReason": "end_turn", "messages": [message, {"role": "assistant", "content": "Done."}]}


CLIENT = """
turns:
  - steps:
      - tool: {name: weather, side: client, input: {city: Osaka}}
        then: [{steps: [{say: 'It says ${saved.it}'}]}]
        save: {it: /content}
"""


async def test_a_client_side_tool_ends_the_turn_and_its_result_goes_on_with_it(serve):
    server = await serve(CLIENT)
    session = await server.create(tools=declared("weather"))
    events = await server.events(session, "hi")
    assert [name for name, _ in events] == ["turn_start", "tool_call", "turn_stop"]
    assert events[1][1] == {"toolCallId": "call_1", "name": "weather", "input": {"city": "Osaka"}}
    assert events[2] == PARKED
    events = await server.events(session, result("call_1", "18°C"))
    assert events[1:] == [("text_delta", {"delta": "It says 18°C"}), ("turn_stop", {"stopReason": "end_turn"})]
    assert (await server.history(session))[2] == {"role": "tool", "toolCallId": "call_1", "content": "18°C"}


async def test_a_client_side_tool_that_the_client_does_not_declare_is_skipped(serve):
    server = await serve(CLIENT)
    events = await server.events(await server.create(tools=declared("other")), "hi")
    assert [name for name, _ in events] == ["turn_start", "turn_stop"]


async def test_any_client_side_tool_gets_an_input_that_fits_its_schema(serve):
    server = await serve("turns: [{steps: [{tool: {name: any, side: client}}]}]")
    session = await server.create(tools=declared("weather"))
    events = await server.events(session, "hi")
    assert events[1][1] == {"toolCallId": "call_1", "name": "weather", "input": {"city": "Osaka"}}


TOGETHER = """
agent: {tools: [{name: a}, {name: b}, {name: c}]}
turns:
  - steps:
      - together:
          - tool: {name: a, id: A, output: ra}
          - tool: {name: b, id: B, output: rb}
          - tool: {name: mine, id: C, side: client}
      - say: Done.
"""


async def test_parallel_calls_all_go_out_before_tool_use_and_come_back_in_one_request(serve):
    server = await serve(TOGETHER)
    agent = {"name": "mock-agent", "tools": [{"name": "a", "trust": True}, {"name": "b"}]}
    session = await server.create(agent=agent, tools=declared("mine"))
    events = await server.events(session, "hi")
    calls = {data["toolCallId"] for name, data in events if name == "tool_call"}
    assert calls == {"A", "B", "C"}
    assert [data for name, data in events if name == "tool_result"] == [{"toolCallId": "A", "content": "ra"}]
    assert events[-1] == PARKED
    events = await server.events(session, result("C", "rc"), permission("B", True))
    assert [data for name, data in events if name == "tool_result"] == [{"toolCallId": "B", "content": "rb"}]
    assert events[-2:] == DONE
    history = await server.history(session)
    assert [block["toolCallId"] for block in history[1]["content"]] == ["A", "B", "C"]
    assert [(entry["toolCallId"], entry["content"]) for entry in history[2:5]] == [
        ("A", "ra"),
        ("C", "rc"),
        ("B", "rb"),
    ]
    assert len(history) == 6


async def test_calls_made_together_are_in_one_message_whatever_their_order(serve):
    """The public client looks for open calls in the last message of the assistant alone."""
    server = await serve(TOGETHER)
    agent = {"name": "mock-agent", "tools": [{"name": "a"}, {"name": "b", "trust": True}]}
    session = await server.create(agent=agent, tools=declared("mine"))
    answer = (await server.turn(session, "hi")).json()
    assert [block["toolCallId"] for block in answer["messages"][0]["content"]] == ["A", "B", "C"]
    assert answer["messages"][1:] == [{"role": "tool", "toolCallId": "B", "content": "rb"}]
    assert await server.history(session) == [{"role": "user", "content": "hi"}, *answer["messages"]]


@pytest.mark.parametrize(
    ("messages", "field"),
    [
        ([permission("B", True)], "C"),
        ([result("C", "x"), result("B", "x")], "messages[1].role"),
        ([result("C", "x"), permission("B", True), permission("B", True)], "messages[2].toolCallId"),
        ([result("C", "x"), permission("B", True), result("A", "x")], "messages[2].toolCallId"),
        ([result("C", "x"), permission("B", True), {"role": "user", "content": "and"}], "messages"),
        ([{"role": "user", "content": "never mind"}], "B, C"),
        ([permission("B", True), permission("C", True)], "messages[1].role"),
    ],
)
async def test_wrong_results_are_refused_and_the_turn_stays_parked(serve, messages, field):
    server = await serve(TOGETHER)
    agent = {"name": "mock-agent", "tools": [{"name": "a", "trust": True}, {"name": "b"}]}
    session = await server.create(agent=agent, tools=declared("mine"))
    await server.events(session, "hi")
    reply = await server.turn(session, *messages)
    assert reply.status_code == 400
    assert reply.json()["error"]["code"] == "invalid_params"
    assert field in reply.json()["error"]["message"]
    events = await server.events(session, permission("B", False), result("C", "rc"))
    assert events[-2:] == DONE


async def test_results_without_an_open_call_are_refused(serve):
    server = await serve(SEARCH)
    reply = await server.turn(await server.create(), result("call_9", "x"))
    assert reply.status_code == 400
    assert "messages[0].toolCallId" in reply.json()["error"]["message"]


async def test_a_parked_turn_stays_when_its_client_is_gone_and_goes_when_the_session_goes(serve):
    server = await serve(SEARCH)
    session = await server.create(agent=enabled("web_search"))
    async with server.streaming(session, "hi") as stream:
        await stream.until("turn_stop")
    assert (await server.events(session, permission("call_1", True)))[-2:] == DONE
    await server.events(session, "again")
    assert (await server.http.delete(f"/sessions/{session}")).status_code == 204
    assert (await server.turn(session, permission("call_2", True))).status_code == 404
    await server.host.backstage.quiet()


async def test_calls_left_open_by_a_seeded_history_are_answered_and_start_the_turn_for_their_result(serve):
    server = await serve("""
turns:
  - when: {tool_result: weather}
    steps: [{say: 'So it is ${prompt}'}]
  - steps: [{say: other}]
""")
    use = {"type": "tool_use", "toolCallId": "t1", "name": "weather", "input": {}}
    seeds = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [use]}]
    session = await server.create(tools=declared("weather"), messages=seeds)
    events = await server.events(session, result("t1", [{"type": "text", "text": "18°C"}]))
    assert events[1] == ("text_delta", {"delta": "So it is 18°C"})
    assert await server.history(session) == [
        *seeds,
        {"role": "tool", "toolCallId": "t1", "content": [{"type": "text", "text": "18°C"}]},
        {"role": "assistant", "content": "So it is 18°C"},
    ]


async def test_a_call_of_the_server_left_open_waits_for_a_permission(serve):
    server = await serve("agent: {tools: [{name: web_search}]}\nturns: [{steps: [{say: ok}]}]")
    use = {"type": "tool_use", "toolCallId": "t1", "name": "web_search", "input": {}}
    seeds = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [use]}]
    session = await server.create(agent=enabled("web_search"), messages=seeds)
    assert (await server.turn(session, result("t1", "x"))).status_code == 400
    events = await server.events(session, permission("t1", True))
    assert events[1:] == [
        ("tool_result", {"toolCallId": "t1", "content": ""}),
        ("text_delta", {"delta": "ok"}),
        ("turn_stop", {"stopReason": "end_turn"}),
    ]


async def test_overrides_of_a_turn_last(serve):
    server = await serve(SEARCH)
    session = await server.create()
    override = {"tools": [{"name": "web_search", "trust": True}]}
    assert CALL in await server.events(session, "hi", agent=override, tools=declared("weather"))
    told = (await server.http.get(f"/sessions/{session}")).json()
    assert told["agent"]["tools"] == [{"name": "web_search", "trust": True}]
    assert told["tools"] == declared("weather")
    assert "tool_call" in [name for name, _ in await server.events(session, "again")]
