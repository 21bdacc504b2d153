"""Order: what is dropped, doubled, delayed, held and played around messages, as clients receive it, and when."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from tests.faults.wire import CWD, Client, is_reply, kinds, said, serving

TALK = "sessions: {auto_title: null}\nturns: [{steps: [{say: one}, {say: two}, {say: three}]}]\n"
ASKS = """
turns:
  - steps:
      - {say: one}
      - {ask: {title: May I?}, then: [{when: {outcome: granted}, steps: [{say: granted}]}]}
"""
GRANTED = {"outcome": {"outcome": "selected", "optionId": "allow_once"}}


def moments(client: Client) -> list[float]:
    """When each piece came, from the first on."""
    times = [when for when, _ in client.raw.pieces]
    return [round(when - times[0], 3) for when in times]


# --- drop, copies


async def test_a_dropped_message_never_leaves_and_a_dropped_request_never_arrives(autojump_clock: Any) -> None:
    faults = """
faults:
  - {at: say, when: {nth: 2}, drop: true}
  - {at: create, when: {nth: 1}, drop: true}
  - {at: "reply:session/prompt", drop: true}
"""
    async with serving(TALK + faults) as server:
        client = await server.client()
        await client.initialize()
        lost = await client.request("session/new", cwd=CWD, mcpServers=[])
        session = await client.new()
        assert not any(is_reply(message, lost) for message in client.seen)
        await client.prompt(session)
        assert said(await client.during(60)) == ["one", "three"]
        assert kinds(client.seen)[-1] == "agent_message_chunk", "no reply"
        again = await client.prompt(session)
        assert [message["result"] for message in await client.during(60) if is_reply(message, again)] == []
        assert len((await client.call("session/list"))["result"]["sessions"]) == 1


async def test_a_dropped_turn_in_aap_has_no_answer_and_a_dropped_end_no_stop(autojump_clock: Any) -> None:
    async with serving(TALK + "faults: [{at: turn, when: {nth: 1}, drop: true}, {at: stop, drop: true}]") as server:
        aap = await server.aap()
        session = await aap.new()
        await aap.begin(session)
        assert await aap.raw.quiet(60)
        other = await server.aap()
        reply = await other.turn(session)
        assert reply.complete
        assert [name for name, _ in reply.events] == ["turn_start", "text_delta", "text_delta", "text_delta"]


async def test_copies_are_the_same_bytes_and_are_not_matched_again() -> None:
    async with serving(TALK + "faults: [{at: say, when: {nth: 1}, copies: 3}, {at: stop, copies: 2}]") as server:
        client = await server.client()
        session = await client.new()
        id = await client.prompt(session)
        messages = [await client.next() for _ in range(7)]
        assert said(messages) == ["one", "one", "one", "two", "three"]
        assert messages[0] == messages[1] == messages[2]
        assert is_reply(messages[5], id)
        assert messages[5] == messages[6]
        aap = await server.aap()
        reply = await aap.turn(await aap.new())
        names = [name for name, _ in reply.events]
        assert names == ["turn_start", *["text_delta"] * 5, "turn_stop", "turn_stop"]


async def test_a_doubled_request_to_the_client_is_answered_once() -> None:
    async with serving(ASKS + 'faults: [{at: "request:session/request_permission", copies: 2}]') as server:
        client = await server.client()
        client.answers["session/request_permission"] = GRANTED
        messages = await client.turn(await client.new())
        assert kinds(messages).count("session/request_permission") == 2
        assert said(messages) == ["one", "granted"]
        await client.call("session/list")
        assert len(server.seen.of("unexpected_answer")) == 1


# --- delay: holds back all behind it


async def test_a_delay_holds_back_everything_behind_it_on_its_channel_and_nothing_elsewhere(
    autojump_clock: Any,
) -> None:
    async with serving(TALK + "faults: [{at: say, when: {nth: 2}, delay: 20s}]") as server:
        client, other = await server.client(), await server.client()
        session = await client.new()
        await other.initialize()
        start = trio.current_time()
        await client.prompt(session)
        assert said([await client.next()]) == ["one"]
        assert trio.current_time() == start
        await other.call("session/list")
        assert trio.current_time() == start
        listed = await client.request("session/list")
        assert said([await client.next()]) == ["two"]
        assert trio.current_time() - start == 20
        await client.reply(listed)
        assert said(client.seen) == ["one", "two", "three"]
        assert trio.current_time() - start == 20
        aap = await server.aap()
        session = await aap.new()
        start = trio.current_time()
        reply = await aap.turn(session)
        assert reply.told == ["one", "two", "three"]
        assert trio.current_time() - start == 20


async def test_a_slow_handler_delays_its_reply_in_every_protocol(autojump_clock: Any) -> None:
    async with serving("faults: [{at: initialize, delay: 20s}, {at: GET /meta, delay: {uniform: [2s, 2s]}}]") as server:
        client = await server.client()
        start = trio.current_time()
        await client.initialize()
        assert trio.current_time() - start == 20
        aap = await server.aap()
        await aap.call("GET", "/meta")
        assert trio.current_time() - start == 22


async def test_a_message_of_the_client_can_be_taken_late(autojump_clock: Any) -> None:
    """A notification has no reply to hold up: it is the notification itself that comes late."""
    async with serving(
        "turns: [{steps: [{repeat: {every: 1s, steps: [{say: x}]}}]}]\nfaults: [{at: cancel, delay: 5s}]"
    ) as server:
        client = await server.client()
        session = await client.new()
        id = await client.prompt(session)
        await client.next()
        await client.cancel(session)
        reply = await client.reply(id)
        assert reply["result"] == {"stopReason": "cancelled"}
        assert 5 <= len(said(client.seen)) <= 7


async def test_an_answer_of_the_client_can_be_taken_late(autojump_clock: Any) -> None:
    async with serving(ASKS + 'faults: [{at: "answer:session/request_permission", delay: 3s}]') as server:
        client = await server.client()
        client.answers["session/request_permission"] = GRANTED
        session = await client.new()
        start = trio.current_time()
        assert said(await client.turn(session)) == ["one", "granted"]
        assert trio.current_time() - start == 3


# --- hold: lets others pass


async def test_two_replies_held_until_the_next_come_in_reverse_order(autojump_clock: Any) -> None:
    async with serving("faults: [{at: create, when: {nth: 1}, hold: {until: reply}}]") as server:
        client = await server.client()
        await client.initialize()
        first = await client.request("session/new", cwd=CWD, mcpServers=[])
        listed = await client.call("session/list")
        assert len(listed["result"]["sessions"]) == 1, "the handler has run; replies of other methods pass"
        second = await client.request("session/new", cwd=CWD, mcpServers=[])
        messages = [await client.next(), await client.next()]
        assert [message["id"] for message in messages] == [second, first]
        assert messages[0]["result"]["sessionId"] != messages[1]["result"]["sessionId"]


async def test_two_answers_of_aap_held_until_the_next_come_in_reverse_order(autojump_clock: Any) -> None:
    async with serving("faults: [{at: create, when: {nth: 1}, hold: reply}]") as server:
        first, second = await server.aap(), await server.aap()
        body = {"agent": {"name": "mock-agent"}}
        await first.ask("POST", "/sessions", body)
        assert await first.raw.quiet(5)
        reply = await second.call("POST", "/sessions", body)
        late = await first.reply()
        assert late is not None
        assert (reply.status, late.status) == (201, 201)


@pytest.mark.parametrize("at", ["say", "update:agent_message_chunk"])
async def test_what_is_held_until_the_turn_has_ended_comes_behind_its_reply(autojump_clock: Any, at: str) -> None:
    async with serving(TALK + f'faults: [{{at: "{at}", when: {{nth: 2}}, hold: {{until: turn_ended}}}}]') as server:
        client = await server.client()
        session = await client.new()
        messages = await client.turn(session)
        assert said(messages) == ["one", "three"]
        assert said([await client.next()]) == ["two"]


async def test_a_reply_held_until_the_next_prompt_comes_with_it(autojump_clock: Any) -> None:
    async with serving(TALK + "faults: [{at: stop, when: {nth: 1}, hold: {until: next_prompt}}]") as server:
        client = await server.client()
        session = await client.new()
        first = await client.prompt(session)
        assert said(await client.during(60)) == ["one", "two", "three"]
        assert not any(is_reply(message, first) for message in client.seen)
        second = await client.prompt(session)
        await client.reply(second)
        ends = [message["id"] for message in client.seen if "stopReason" in message.get("result", {})]
        assert ends == [first, second]


async def test_what_is_held_for_a_while_lets_others_pass(autojump_clock: Any) -> None:
    async with serving(TALK + "faults: [{at: say, when: {nth: 1}, hold: {until: 4s}}]") as server:
        client = await server.client()
        session = await client.new()
        start = trio.current_time()
        assert said(await client.turn(session)) == ["two", "three"]
        assert trio.current_time() == start
        assert said([await client.next()]) == ["one"]
        assert trio.current_time() - start == 4
        aap = await server.aap()
        reply = await aap.turn(await aap.new())
        assert reply.told == ["two", "three", "one"]


async def test_what_is_held_for_ever_never_comes(autojump_clock: Any) -> None:
    async with serving(TALK + "faults: [{at: stop, hold: never}]") as server:
        client = await server.client()
        await client.prompt(await client.new())
        assert said(await client.during(600)) == ["one", "two", "three"]


# --- play


async def test_steps_play_before_the_reply_that_makes_their_session(autojump_clock: Any) -> None:
    faults = """
faults:
  - at: "reply:session/new"
    play_before: [{info: {title: Early}}, {after: 2s, commands: [{name: a}]}]
    play_after: [{mode: x}]
"""
    async with serving("agent: {modes: [{id: x}]}\n" + faults) as server:
        client = await server.client()
        await client.initialize()
        start = trio.current_time()
        id = await client.request("session/new", cwd=CWD, mcpServers=[])
        messages = [await client.next() for _ in range(4)]
        assert kinds(messages) == ["session_info_update", "available_commands_update", "result", "current_mode_update"]
        assert trio.current_time() - start == 2
        assert is_reply(messages[2], id)
        assert {m["params"]["sessionId"] for m in messages if "method" in m} == {messages[2]["result"]["sessionId"]}


async def test_played_messages_are_not_faulted_and_come_behind_all_copies() -> None:
    faults = """
faults:
  - {at: say, when: {nth: 2}, copies: 2, play_before: [{say: before}], play_after: [{say: after}]}
  - {at: say, when: {times: 9}, edit: [{set: /params/update/seen, to: true}]}
"""
    async with serving(TALK + faults) as server:
        client = await server.client()
        messages = await client.turn(await client.new())
        assert said(messages) == ["one", "before", "two", "two", "after", "three"]
        edited = [message for message in messages[:-1] if "seen" in message["params"]["update"]]
        assert said(edited) == ["one", "two", "two", "three"]


async def test_in_aap_steps_play_into_the_same_response_behind_its_end() -> None:
    faults = """
faults:
  - at: "event:turn_stop"
    play_before: [{say: last}]
    play_after: [{say: more}, {send: {event: turn_stop, data: {stopReason: end_turn}}}]
"""
    async with serving(TALK + faults) as server:
        aap = await server.aap()
        reply = await aap.turn(await aap.new())
        names = [name for name, _ in reply.events]
        assert names[-4:] == ["text_delta", "turn_stop", "text_delta", "turn_stop"]
        assert reply.told == ["one", "two", "three", "last", "more"]
        assert reply.complete


async def test_steps_may_stand_in_the_place_of_a_message(autojump_clock: Any) -> None:
    async with serving(
        TALK + "faults: [{at: say, when: {nth: 2}, drop: true, play_before: [{say: instead}]}]"
    ) as server:
        client = await server.client()
        assert said(await client.turn(await client.new())) == ["one", "instead", "three"]


# --- combination


async def test_later_rules_see_what_earlier_ones_made_of_a_message() -> None:
    faults = """
faults:
  - {at: say, when: {nth: 1}, edit: {set: /params/update/content/text, to: "<${value}>"}}
  - {at: say, edit: {set: /params/update/content/text, to: "[${value}]"}}
  - {at: list, error: overloaded}
  - {at: "reply:session/list", when: {result: {/error/code: -32603}}, edit: {set: /error/message, to: "was ${value}"}}
"""
    async with serving(TALK + faults) as server:
        client = await server.client()
        assert said(await client.turn(await client.new())) == ["[<one>]", "[two]", "[three]"]
        assert (await client.call("session/list"))["error"]["message"] == "was Overloaded"


async def test_an_error_that_a_fault_made_is_a_reply_like_any_other(autojump_clock: Any) -> None:
    """Error, edit, delay, copies and bytes of one fault: from meaning to bytes."""
    fault = '{at: list, copies: 2, delay: 3s, bytes: {before: " "}, edit: {set: /error/data, to: odd}, error: busy}'
    async with serving(f"faults: [{fault}]") as server:
        client = await server.client()
        await client.initialize()
        start = trio.current_time()
        await client.request("session/list")
        one, two = await client.link.text(), await client.link.text()
        assert one == two
        assert one is not None
        assert one.startswith(b' {"jsonrpc"')
        assert b'"data":"odd"' in one
        assert trio.current_time() - start == 3


async def test_an_answer_that_comes_twice_is_noted_and_changes_nothing() -> None:
    async with serving(
        "turns: [{steps: [{ask: {title: a}}, {say: done}]}]\n"
        "faults: [{at: 'answer:session/request_permission', copies: 2}]"
    ) as server:
        client = await server.client()
        client.answers["session/request_permission"] = GRANTED
        assert said(await client.turn(await client.new())) == ["done"]
        assert server.seen.of("unexpected_answer")
