"""Same scenario, same seed, same input: the same bytes, however fast the client reads and whatever the machine does."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockagent.scenario import model
from mockagent.scenario.load import load_text
from mockagent.script.pace import pieces
from tests.harness import Client, Theatre

CLOCKS = {
    "frozen": "clock: {now: '2026-01-15T09:00:00Z', speed: 0}",
    "logical": "clock: {now: '2026-01-15T09:00:00Z'}",
    "wall": "clock: {speed: 1}",
}

TWINS = (
    "turns: [{steps: [{together: ["
    "[{wait: 1s}, {say: a1}, {wait: 1s}, {say: a2}, {wait: {uniform: [1s, 2s]}}, {say: a3}],"
    "[{wait: 1s}, {say: b1}, {wait: 1s}, {say: b2}, {wait: {uniform: [1s, 2s]}}, {say: b3}]]}]}]"
)

BUSY = (
    "pace: {chunk: 1}, turns: [{steps: [{together: ["
    "[{say: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}, {wait: 500ms}, {say: AAAAAAAAAA}, {wait: {uniform: [1ms, 2s]}},"
    " {tool: {name: x, takes: {uniform: [1ms, 9ms]}, output: y}}],"
    "[{wait: 1s}, {plan: [{content: b}]}, {say: bbbbbbbbbbbbbbb, pace: {chunk: 2, rate: 60/s, jitter: 0.5}}],"
    "[{think: ccccccccccccc}, {repeat: {times: 9, every: {lognormal: {median: 80ms, sigma: 1}}, steps: "
    "[{say: d, join: true, when: {chance: 0.5}}, {info: {title: '${fake.title}'}}]}}],"
    "[{wait: 2s}, {say: last}]]}, {stop: end_turn}, {together: [[{wait: 1s}, {info: {title: e}}], "
    "[{wait: 1s}, {usage: {used: 1, size: 2}}]]}]}], "
    "schedule: [{event: session_opened, after: 1s, every: 700ms, times: 4, steps: [{commands: []}]}]"
)


def scenario(clock: str, body: str) -> model.Scenario:
    return load_text(f"{{seed: 5, {CLOCKS[clock]}, {body}}}")


def transcript(played: model.Scenario, room: int = 1024, late: float = 0.0) -> bytes:
    """All bytes of one session with one prompt; `late` is how much every wait takes too long."""
    theatre = Theatre(played)
    client = theatre.client(room=room, judge=False)
    written: list[bytes] = []
    _collect(client, written)
    client.request("initialize", {"protocolVersion": 1}, id=1)
    client.request("session/new", {"cwd": "/a", "mcpServers": []}, id=2)
    client.read()
    session = client.sent[-1]["result"]["sessionId"]
    client.request("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}, id=3)
    while True:
        theatre.run(until=theatre.now + 0.3)
        theatre.now += late
        client.read()
        if not theatre.agent.playing and theatre.stage.deadline() == float("inf"):
            client.read()
            return b"\n".join(written)


def _collect(client: Client, written: list[bytes]) -> None:
    read = client.read

    def reading() -> list[Any]:
        written.extend(client.tray.texts)
        return read()

    client.read = reading  # type: ignore[method-assign]


def test_five_hundred_runs_of_two_equal_branches_are_one_transcript() -> None:
    played = scenario("frozen", TWINS)
    transcripts = {transcript(played) for _ in range(500)}
    assert len(transcripts) == 1
    [only] = transcripts
    places = [only.index(f'"{word}"'.encode()) for word in ("a1", "b1", "a2", "b2")]
    assert places == sorted(places)


@pytest.mark.parametrize("clock", ["frozen", "logical"])
@pytest.mark.parametrize("body", [TWINS, BUSY], ids=["twins", "busy"])
@pytest.mark.parametrize("room", [1, 2, 7, 64])
def test_a_client_that_reads_slowly_gets_the_same_bytes(clock: str, body: str, room: int) -> None:
    played = scenario(clock, body)
    assert transcript(played, room) == transcript(played)


@pytest.mark.parametrize("clock", ["logical", "wall"])
def test_a_slow_machine_sends_the_same_bytes(clock: str) -> None:
    played = scenario(clock, TWINS)
    ideal = transcript(played)
    assert all(transcript(played, late=late) == ideal for late in (0.001, 0.05, 1.7))


def test_another_seed_is_another_run() -> None:
    played = scenario("frozen", BUSY)
    other = msgspec.structs.replace(played, seed=6)
    assert transcript(played) != transcript(other)


def test_what_one_session_draws_moves_nothing_in_another() -> None:
    def said(*before: str) -> list[Any]:
        theatre = Theatre(scenario("frozen", BUSY))
        client = theatre.client()
        sessions = [client.new() for _ in range(2)]
        for text in before:
            client.prompt(sessions[1], text)
        at = len(client.sent)
        client.prompt(sessions[0])
        own = [message["params"]["update"] for message in client.sent[at:] if "params" in message]
        return [update["content"] for update in own if update["sessionUpdate"] == "agent_message_chunk"]

    assert said() == said("x", "y")


# --- pieces


PACES = st.one_of(
    st.sampled_from([model.Pace(chunk="word"), model.Pace(chunk="line")]),
    st.builds(model.Pace, chunk=st.integers(1, 9)),
)


@given(st.text() | st.text(alphabet="a \n\r\t\u2028é😀", max_size=40), PACES)
def test_pieces_of_a_text_join_back_to_it_and_none_is_empty(text: str, pace: model.Pace) -> None:
    cut = pieces(text, pace)
    assert "".join(cut) == text
    assert text == "" or all(cut)
    assert pieces(text, None) == [text]
