"""Faults that chance draws: the same for the same seed, only what can be, all in the journal, and never a crash."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from random import Random
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from mockagent.faults.chaos import DRAWS, KINDS, Chaos, parse
from mockagent.faults.effects import EFFECTS
from mockagent.faults.interface import NoFaults
from mockagent.faults.written import written
from mockagent.host import Options
from mockagent.message import HttpHead, Message, Peer, Protocol, Transport
from mockagent.scenario.load import load_text
from mockagent.scenario.model import Fault
from mockagent.testing import MockAgent
from tests.faults.wire import Client, Served, serving

Json = dict[str, Any]


def fresh(seed: int) -> Any:
    return lambda purpose, session: Random(f"{seed}/{session}/{purpose}")


def update(session: str = "s", text: str = "größer", transport: Transport = "stdio") -> Message:
    content = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    data = {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session, "update": content}}
    kind = "update:agent_message_chunk"
    return Message(kind, data, Peer("c1", "acp", transport), neutral="say", session=session, origin="turn")


def drawn(chaos: Chaos, session: str, count: int = 60) -> list[Json | None]:
    faults = [chaos.leaving(update(session)) for _ in range(count)]
    return [None if fault is None else written(fault.effects) for fault in faults]


# --- what can be asked for


@pytest.mark.parametrize("text", ["", "often", "-0.1", "1.5", "nan", "0.1:", "0.1:orders", "0.1:order,,wire"])
def test_what_is_no_rate_and_no_kind_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(ValueError, match=r"from 0 to 1|order, list, wire"):
        parse(text)


def test_without_kinds_everything_may_be_drawn() -> None:
    assert parse("0.05").effects == set(EFFECTS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_stands_for_its_effects(kind: str) -> None:
    assert parse(f"1:{kind}").effects == {name for name, row in EFFECTS.items() if row.layer == kind}


def test_single_effects_can_be_chosen_beside_kinds() -> None:
    assert parse("1:drop,list").effects == {"drop", "cursor", "page", "rows"}


def test_every_effect_can_be_drawn_but_what_outlives_the_client() -> None:
    assert set(EFFECTS) - set(DRAWS) <= {"child"}


# --- the draws


def test_the_same_seed_gives_the_same_faults_and_another_seed_others() -> None:
    first, again, other = (drawn(Chaos(parse("0.3"), fresh(seed)), "s") for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_other_sessions_change_nothing_for_one() -> None:
    alone = drawn(Chaos(parse("0.3"), fresh(1)), "s")
    chaos = Chaos(parse("0.3"), fresh(1))
    beside = [(drawn(chaos, "other", 1), drawn(chaos, "s", 1))[1][0] for _ in range(60)]
    assert beside == alone


def test_a_rate_of_zero_draws_nothing() -> None:
    assert set(map(str, drawn(Chaos(parse("0"), fresh(1)), "s", 500))) == {"None"}


def test_about_as_many_are_drawn_as_the_rate_says() -> None:
    faults = drawn(Chaos(parse("0.2:order"), fresh(1)), "s", 2000)
    assert 300 < sum(fault is not None for fault in faults) < 500


def test_over_time_everything_possible_is_drawn() -> None:
    counts: Counter[str] = Counter()
    for fault in drawn(Chaos(parse("1"), fresh(1)), "s", 3000):
        counts.update(list(fault or {}))
    able = {"edit", "drop", "copies", "delay", "hold", "escape", "newline", "truncate", "bytes", "split", "coalesce"}
    assert able | {"rate", "stderr", "stall", "disconnect", "exit"} <= set(counts)
    assert not {"binary", "comment", "no_blank", "event_name", "cursor", "error"} & set(counts)


def test_what_leaves_with_the_next_message_waits_for_it() -> None:
    chaos = Chaos(parse("1:coalesce"), fresh(1))
    assert chaos.leaving(update()) is None
    assert chaos.lag == 1
    made = chaos.leaving(update())
    assert made is not None
    assert made.effects == {"coalesce": 2}
    assert chaos.lag == 0


WAYS: list[tuple[Protocol, Transport]] = [("acp", "stdio"), ("acp", "ws"), ("acp", "http"), ("aap", "http")]


def incoming(protocol: Protocol, peer: Peer) -> list[Message]:
    if protocol == "aap":
        head = HttpHead(method="GET", path="/sessions")
        return [Message("GET /sessions", None, peer, neutral="list", http=head, id=(1,))]
    listing = Message("session/list", {"jsonrpc": "2.0", "id": 1, "method": "session/list"}, peer, neutral="list", id=1)
    cancel = Message("session/cancel", {"jsonrpc": "2.0", "method": "session/cancel"}, peer, neutral="cancel")
    return [listing, cancel, Message("answer:fs/read_text_file", {"jsonrpc": "2.0", "id": 0, "result": {}}, peer, id=0)]


def outgoing(protocol: Protocol, peer: Peer) -> list[Message]:
    if protocol == "aap":
        reply = Message("reply:GET /sessions", {"sessions": [{"id": "ä"}]}, peer, http=HttpHead())
        delta = {"event": "text_delta", "text": "größer"}
        return [reply, Message("event:text_delta", delta, peer, neutral="say", session="s", origin="turn")]
    reply = Message("reply:session/list", {"jsonrpc": "2.0", "id": 1, "result": {"sessions": []}}, peer, id=1)
    ask = {"jsonrpc": "2.0", "id": 0, "method": "fs/read_text_file", "params": {"sessionId": "s", "path": "/ä"}}
    return [reply, update(transport=peer.transport), Message("request:fs/read_text_file", ask, peer, session="s", id=0)]


def faults(protocol: Protocol, peer: Peer, chaos: Chaos) -> list[Fault]:
    made = [chaos.arriving(message) for message in incoming(protocol, peer)]
    made += [chaos.leaving(message) for message in outgoing(protocol, peer)]
    made += [chaos.living(point, peer, "s") for point in ("connected", "turn_started", "eof", "sigterm", "idle")]
    return [fault for fault in made if fault is not None]


@given(seed=st.integers(0, 10_000), way=st.sampled_from(WAYS))
def test_whatever_is_drawn_could_have_been_written_in_a_scenario(seed: int, way: tuple[Protocol, Transport]) -> None:
    protocol, transport = way
    for fault in faults(protocol, Peer("c1", protocol, transport), Chaos(parse("1"), fresh(seed))):
        effects = written(fault.effects)
        if effects:  # steps are not written
            when = {"protocol": protocol, "transport": transport}
            text = json.dumps({"legality": "violation", "faults": [{"at": fault.at, "when": when, **effects}]})
            [loaded] = load_text(text).faults
            assert written(loaded.effects) == effects


# --- the whole way

SCENARIO = """
clock: {now: "2026-01-15T09:00:00Z"}
sessions: {page_size: 1, synthetic: {count: 4}}
turns: [{steps: [{think: Hm}, {tool: {name: a, ask: true, output: "ä"}}, {say: one}, {after: 10ms, say: two}]}]
"""


async def converse(seed: int, chaos: str) -> tuple[bytes, list[Any]]:
    """What a client hears that goes on whatever comes, and the journal."""
    heard = bytearray()
    async with MockAgent(load_text(SCENARIO), seed=seed, chaos=chaos).in_memory() as mock:
        stream = mock.connect()

        async def say(id: int, method: str, **params: Any) -> None:
            message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError), trio.move_on_after(40):
                await stream.send_all(json.dumps(message).encode() + b"\n")
                while data := await stream.receive_some():
                    heard.extend(data)

        await say(0, "initialize", protocolVersion=1)
        await say(1, "session/new", cwd="/", mcpServers=[])
        session = next((entry.session for entry in mock.journal.entries if entry.session), "sess_none")
        await say(2, "session/list")
        for id in (3, 4):
            await say(id, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": "go"}])
        return bytes(heard), mock.journal.entries


@pytest.mark.parametrize("seed", range(25))
async def test_a_mock_in_which_everything_goes_wrong_does_not_fail_itself(
    seed: int, autojump_clock: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    _, entries = await converse(seed, "1")
    assert [entry.detail for entry in entries if entry.event == "bug"] == []
    assert any(entry.event == "fault" for entry in entries)
    assert "Traceback" not in capsys.readouterr().err


async def test_the_same_seed_and_input_give_the_same_bytes(autojump_clock: Any) -> None:
    for seed in range(6):
        assert (await converse(seed, "0.3"))[0] == (await converse(seed, "0.3"))[0]


async def test_every_fault_drawn_is_in_the_journal_with_what_it_did(autojump_clock: Any) -> None:
    _, entries = await converse(3, "1:answer")
    fired = [entry.detail for entry in entries if entry.event == "fault"]
    assert fired
    for detail in fired:
        assert detail["place"] == "chaos"
        assert detail["what"] == "fired"
        assert list(detail["does"]) == detail["effects"]
        assert detail["nth"] >= 1


@pytest.mark.parametrize("seed", range(5))
async def test_a_server_goes_on_for_others_whatever_happens_to_some(
    seed: int, autojump_clock: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    async with serving(SCENARIO, options=Options(chaos="0.5", seed=seed)) as server:
        for _ in range(4):
            await attempt(server)
        assert server.seen.of("bug") == []
        assert server.seen.of("fault")
        assert "Traceback" not in capsys.readouterr().err
        server.host.faults = server.host.backstage.faults = NoFaults()
        assert await Client(await server.websocket()).new()


async def attempt(server: Served) -> None:
    """A client of each protocol, which gives up when nothing comes, or nothing that makes sense."""
    with trio.move_on_after(30), suppress(*UNHAPPY):
        client = Client(await server.websocket())
        await client.turn(await client.new())
    with trio.move_on_after(30), suppress(*UNHAPPY):
        reader = await server.aap()
        await reader.ask("GET", "/sessions")
        await reader.reply()


UNHAPPY = (AssertionError, AttributeError, KeyError, IndexError, TypeError, ValueError, trio.BrokenResourceError)
"""What the plain clients of these tests make of trouble."""
