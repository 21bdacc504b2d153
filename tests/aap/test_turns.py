"""Turns: the three stream modes, what steps become in each, and how a turn ends."""

from __future__ import annotations

import pytest
import trio

HELLO = """
turns:
  - steps:
      - think: Hm.
      - say: Hello there
      - say: friend
"""


async def test_deltas_come_between_turn_start_and_turn_stop(serve):
    server = await serve(HELLO)
    events = await server.events(await server.create(), "hi")
    assert events == [
        ("turn_start", {}),
        ("thinking_delta", {"delta": "Hm."}),
        ("text_delta", {"delta": "Hello there"}),
        ("text_delta", {"delta": "friend"}),
        ("turn_stop", {"stopReason": "end_turn"}),
    ]


async def test_message_mode_has_one_event_for_each_message(serve):
    server = await serve("pace: {rate: 1000/s, chunk: 1}\n" + HELLO)
    events = await server.events(await server.create(), "hi", stream="message")
    assert events == [
        ("turn_start", {}),
        ("thinking", {"thinking": "Hm."}),
        ("text", {"text": "Hello there"}),
        ("text", {"text": "friend"}),
        ("turn_stop", {"stopReason": "end_turn"}),
    ]


async def test_without_a_stream_the_answer_is_one_json(serve):
    server = await serve(HELLO)
    reply = await server.turn(await server.create(), "hi")
    assert reply.headers["content-type"] == "application/json"
    blocks = [
        {"type": "thinking", "thinking": "Hm."},
        {"type": "text", "text": "Hello there"},
        {"type": "text", "text": "friend"},
    ]
    assert reply.json() == {"stopReason": "end_turn", "messages": [{"role": "assistant", "content": blocks}]}


async def test_a_single_text_is_a_string(serve):
    server = await serve("turns: [{steps: [{say: 'You said ${prompt}'}]}]")
    reply = await server.turn(await server.create(), "hi")
    assert reply.json()["messages"] == [{"role": "assistant", "content": "You said hi"}]


async def test_streamed_pieces_leave_as_a_burst_and_are_seen_one_by_one(serve):
    server = await serve("pace: {chunk: 1}\nturns: [{steps: [{say: 'ä\"\\€x'}]}]")
    events = await server.events(await server.create(), "hi")
    assert [data["delta"] for name, data in events if name == "text_delta"] == ["ä", '"', "\\", "€", "x"]
    assert server.seen.kinds("out").count("event:text_delta") == 5


@pytest.mark.parametrize(
    ("said", "sent"),
    [("max_tokens", "max_tokens"), ("refusal", "refusal"), ("cancelled", "error"), ("max_turn_requests", "max_tokens")],
)
async def test_stop_reasons_are_sent_in_the_words_of_aap(serve, said, sent):
    server = await serve(f"turns: [{{steps: [{{stop: {said}}}]}}]")
    session = await server.create()
    assert (await server.events(session, "hi"))[-1] == ("turn_stop", {"stopReason": sent})
    assert (await server.turn(session, "hi")).json()["stopReason"] == sent


async def test_a_failure_ends_a_stream_with_error_and_is_a_status_without_one(serve):
    server = await serve("turns: [{steps: [{say: a}, {fail: rate_limited}]}]")
    session = await server.create()
    assert (await server.events(session, "hi"))[-1] == ("turn_stop", {"stopReason": "error"})
    reply = await server.turn(session, "hi")
    assert (reply.status_code, reply.json()["error"]["code"]) == (429, "rate_limited")
    assert reply.headers["retry-after"]


async def test_what_aap_cannot_say_is_skipped_and_noted(serve):
    server = await serve("turns: [{steps: [{plan: [{content: x}]}, {usage: {used: 1, size: 2}}, {say: a}]}]")
    events = await server.events(await server.create(), "hi")
    assert [name for name, _ in events] == ["turn_start", "text_delta", "turn_stop"]
    assert len(server.seen.noted("skipped")) == 2


async def test_raw_events_are_sent_as_the_scenario_writes_them(serve):
    server = await serve('turns: [{steps: [{send: {event: odd, data: {a: 1}}}, {send: ": hi\\n\\n"}]}]')
    reply = await server.turn(await server.create(), "hi", stream="delta")
    assert b'event: odd\ndata: {"a":1}\n\n: hi\n\n' in reply.content


async def test_a_second_turn_on_a_busy_session_gets_409_and_changes_nothing(serve):
    server = await serve("""
agent: {options: [{id: lang, name: L, type: text, value: en}]}
turns: [{when: {prompt: stay}, steps: [{say: a}, {hang: true}]}, {steps: [{say: b}]}]
""")
    session = await server.create()
    async with server.streaming(session, "stay") as stream:
        await stream.until("turn_start")
        second = await server.turn(session, "go", agent={"options": {"lang": "de"}})
        assert (second.status_code, second.json()["error"]["code"]) == (409, "busy")
        assert (await server.http.get(f"/sessions/{session}")).json()["agent"]["options"] == {"lang": "en"}


async def test_a_client_that_leaves_a_stream_cancels_its_turn(serve):
    server = await serve("turns: [{when: {prompt: stay}, steps: [{say: a}, {hang: true}]}, {steps: [{say: b}]}]")
    session = await server.create()
    async with server.streaming(session, "stay") as stream:
        await stream.until("text_delta")
    await server.host.backstage.quiet()
    assert server.seen.noted("left")
    assert (await server.events(session, "go"))[-1] == ("turn_stop", {"stopReason": "end_turn"})


async def test_many_deltas_arrive_whole_and_in_order(serve):
    words = " ".join(str(number) for number in range(5000))
    server = await serve(f"pace: {{chunk: word}}\nturns: [{{steps: [{{say: '{words}'}}]}}]")
    events = await server.events(await server.create(), "hi")
    assert "".join(data["delta"] for name, data in events if name == "text_delta") == words
    assert len(events) == 5002


BUSY = """
sessions: {{busy: {0}}}
turns: [{{when: {{prompt: stay}}, steps: [{{say: a}}, {{hang: true}}]}}, {{steps: [{{say: b}}]}}]
"""


async def test_a_turn_may_replace_the_one_that_runs(serve):
    server = await serve(BUSY.format("replace"))
    session = await server.create()
    async with server.streaming(session, "stay") as stream:
        await stream.until("text_delta")
        assert (await server.events(session, "go"))[1:] == [
            ("text_delta", {"delta": "b"}),
            ("turn_stop", {"stopReason": "end_turn"}),
        ]
        assert (await stream.until("turn_stop")).data == b'{"stopReason":"error"}'


async def test_a_turn_may_wait_for_the_one_that_runs_and_be_given_up_meanwhile(serve):
    server = await serve(BUSY.format("queue"))
    session = await server.create()
    async with server.streaming(session, "stay") as stream:
        await stream.until("text_delta")
        async with server.streaming(session, "given up") as waiting:
            await waiting.until("turn_start")
        while len(server.seen.noted("left")) < 1:
            await trio.lowlevel.checkpoint()
        async with server.streaming(session, "go") as waiting:
            await waiting.until("turn_start")
            await stream.socket.aclose()
            assert (await waiting.until("turn_stop")).data == b'{"stopReason":"end_turn"}'
    prompts = [message["content"] for message in await server.history(session) if message["role"] == "user"]
    assert prompts == ["stay", "go"]


async def test_turns_may_run_side_by_side_and_each_answer_is_its_own(serve):
    server = await serve(BUSY.format("parallel"))
    session = await server.create()
    async with server.streaming(session, "stay") as stream:
        await stream.until("text_delta")
        events = await server.events(session, "go")
        assert [data.get("delta") for _, data in events] == [None, "b", None]
        agent = server.host.agents[0]
        agent.cancel(agent.session(session))
        assert (await stream.next()).name == "turn_stop"


async def test_what_is_scheduled_during_a_turn_comes_with_its_answer(serve):
    server = await serve("""
turns: [{steps: [{wait_for: {method: list}}, {say: done}]}]
schedule: [{event: turn_started, steps: [{say: meanwhile}]}]
""")
    session = await server.create()
    async with server.streaming(session, "hi") as stream:
        assert (await stream.until("text_delta")).data == b'{"delta":"meanwhile"}'
        await server.http.get("/sessions")
        assert (await stream.until("text_delta")).data == b'{"delta":"done"}'


async def test_a_turn_that_somebody_else_cancels_ends_with_error(serve):
    server = await serve(BUSY.format("busy"))
    session = await server.create()
    agent = server.host.agents[0]
    async with server.streaming(session, "stay") as stream:
        await stream.until("text_delta")
        agent.cancel(agent.session(session))
        assert (await stream.until("turn_stop")).data == b'{"stopReason":"error"}'
        assert await stream.next() is None


async def test_a_session_that_is_deleted_ends_its_turn(serve):
    server = await serve(BUSY.format("busy"))
    session = await server.create()
    async with server.streaming(session, "stay") as stream:
        await stream.until("text_delta")
        assert (await server.http.delete(f"/sessions/{session}")).status_code == 204
        assert (await stream.until("turn_stop")).data == b'{"stopReason":"error"}'


async def test_joined_texts_are_one_message(serve):
    server = await serve("turns: [{steps: [{say: a}, {say: b, join: true}, {say: c}]}]")
    session = await server.create()
    events = await server.events(session, "hi", stream="message")
    assert [data["text"] for name, data in events if name == "text"] == ["ab", "c"]
    blocks = (await server.turn(session, "hi")).json()["messages"][0]["content"]
    assert [block["text"] for block in blocks] == ["ab", "c"]


async def test_a_client_that_does_not_read_holds_up_its_turn_and_nobody_else(serve):
    words = "x" * 100
    server = await serve(f"""
pace: {{chunk: 100}}
turns:
  - when: {{prompt: flood}}
    steps: [{{repeat: {{times: 100000, steps: [{{say: '{words}'}}]}}}}]
  - steps: [{{say: b}}]
""")
    flooded, other = await server.create(), await server.create()
    async with server.streaming(flooded, "flood") as stream:
        await stream.until("turn_start")
        assert (await server.events(other, "hi"))[1] == ("text_delta", {"delta": "b"})
        assert server.seen.kinds("out").count("event:text_delta") < 100_000


async def test_a_restart_ends_the_answers_under_way_and_the_next_turn_begins_anew(serve):
    server = await serve(BUSY.format("busy"))
    session = await server.create()
    async with server.streaming(session, "stay") as stream:
        await stream.until("text_delta")
        server.host.restart()
        assert (await stream.until("turn_stop")).data == b'{"stopReason":"error"}'
        assert await stream.next() is None
    assert (await server.turn(session, "hi")).status_code == 404
    again = await server.create()
    assert again == session
    assert (await server.turn(again, "hi")).json()["stopReason"] == "end_turn"


async def test_a_client_that_leaves_before_a_whole_answer_cancels_its_turn_too(serve):
    server = await serve(BUSY.format("busy"))
    session = await server.create()
    async with server.streaming(session, "stay", stream="none"):
        while not server.host.agents[0].busy:
            await trio.lowlevel.checkpoint()
    with trio.fail_after(5):
        while server.host.agents[0].busy:
            await trio.lowlevel.checkpoint()
    assert (await server.turn(session, "go")).json()["stopReason"] == "end_turn"
