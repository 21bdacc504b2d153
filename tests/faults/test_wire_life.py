"""Points in life: each of them is seen to fire, on every transport that has it."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.faults.wire import CWD, RESET, Client, Served, Socket, process, said, serving

TALK = "sessions: {auto_title: null, stored: [{id: a}]}\nturns: [{steps: [{say: one}, {say: two}]}]\n"
POINTS = ("connected", "session_opened", "session_listed", "turn_started", "turn_ended", "closed", "idle")
ALL = TALK + "faults:\n" + "".join(f"  - {{at: {point}, stderr: '{point} '}}\n" for point in POINTS)


async def gone(server: Served) -> None:
    """Waits until a connection is gone."""
    while not server.seen.of("closed"):
        await trio.lowlevel.checkpoint()


async def test_every_point_fires_over_websocket(autojump_clock: Any, capfd: pytest.CaptureFixture[str]) -> None:
    async with serving(ALL) as server:
        client = await server.client()
        await client.turn(await client.new())
        await client.call("session/list")
        await client.call("session/load", sessionId="a", cwd=CWD, mcpServers=[])
        await trio.sleep(1)
        server.streams[-1].socket.close()
        await gone(server)
    points = [on for _, on in server.seen.fired]
    assert set(points) == set(POINTS)
    assert points[0] == "connected"
    assert points.count("session_opened") == 2
    assert (points.count("turn_started"), points.count("turn_ended"), points.count("closed")) == (1, 1, 1)
    assert set(capfd.readouterr().err.split()) >= set(POINTS)


async def test_every_point_fires_over_aap(autojump_clock: Any, capfd: pytest.CaptureFixture[str]) -> None:
    async with serving(ALL) as server:
        aap = await server.aap()
        session = await aap.new()
        for mode in ("delta", "none"):
            reply = await aap.turn(session, stream=mode)
            assert reply.complete
        await aap.call("GET", "/sessions")
        await trio.sleep(1)
        server.streams[-1].socket.close()
        await gone(server)
    points = [on for _, on in server.seen.fired]
    assert set(points) == set(POINTS)
    assert (points.count("turn_started"), points.count("turn_ended"), points.count("closed")) == (2, 2, 1)
    assert set(capfd.readouterr().err.split()) >= set(POINTS)


async def test_every_point_fires_over_stdio(tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    more = "".join(f"  - {{at: {point}, stderr: '{point} '}}\n" for point in ("start", "eof", "sigterm"))
    file.write_text("legality: unspecified\n" + ALL + more + "  - {at: eof, ignore: eof}\n")
    async with process("acp", files=file) as child:
        client = Client(child)
        await client.turn(await client.new())
        await client.call("session/list")
        await child.stderr.until(b"session_listed ")
        assert child.child.stdin is not None
        await child.child.stdin.aclose()
        await child.stderr.until(b"eof ")
        child.signal(signal.SIGTERM)
        assert await child.ended() == 0
        await child.stderr.rest()
        told = child.stderr.everything.decode().split()
    assert told[0] == "start"
    assert set(told) >= {*POINTS, "start", "eof", "sigterm"} - {"closed"}


async def test_start_and_sigterm_of_a_server(tmp_path: Path) -> None:
    file = tmp_path / "server.yaml"
    file.write_text(
        "legality: unspecified\n"
        'faults: [{at: start, stderr: "hello\\n"}, '
        '{at: sigterm, when: {times: 1}, ignore: sigterm, stderr: "not yet\\n"}]'
    )
    async with process("serve", "--port", "0", files=file) as child:
        assert await child.stderr.until(b"hello\n") is not None
        assert await child.stderr.until(b"listening on ") is not None
        await child.stderr.until(b"\n")
        child.signal(signal.SIGTERM)
        assert await child.stderr.until(b"not yet\n") is not None
        child.signal(signal.SIGTERM)
        assert await child.ended() == 0


async def test_a_server_exits_in_the_middle_of_a_turn_and_resets_nothing_that_was_said(tmp_path: Path) -> None:
    file = tmp_path / "server.yaml"
    file.write_text("legality: unspecified\n" + TALK + "faults: [{at: say, when: {nth: 2}, exit: {signal: SIGKILL}}]")
    async with process("serve", "--port", "0", files=file) as child:
        address = await child.stderr.until(b"\n")
        assert address is not None
        stream = await trio.open_tcp_stream("127.0.0.1", int(address.rsplit(b":", 1)[1]))
        from tests.faults.wire import Raw

        socket = Socket(Raw(stream.receive_some, stream.send_all))
        await socket.shake("/acp", {})
        client = Client(socket)
        await client.prompt(await client.new())
        assert said(await client.rest()) == ["one", "two"]
        assert await child.ended() == -9
        await stream.aclose()


async def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    file = tmp_path / "server.yaml"
    file.write_text('legality: unspecified\nfaults: [{at: start, stderr: "no licence\\n", exit: 6}]')
    async with process("serve", "--port", "0", files=file) as child:
        assert await child.ended() == 6
        assert await child.stderr.rest() == b"no licence\n"


# --- what can be done there


@pytest.mark.parametrize("point", ["connected", "session_opened", "turn_started", "turn_ended", "session_listed"])
async def test_a_connection_can_end_at_a_point_behind_what_was_sent(point: str) -> None:
    faults = f"faults: [{{at: {point}, disconnect: reset}}]"
    async with serving(TALK + faults) as server:
        client = await server.client()
        if point == "connected":
            assert await client.rest() == []
        elif point == "session_opened":
            await client.initialize()
            await client.request("session/new", cwd=CWD, mcpServers=[])
            assert len(await client.rest()) == 1
        elif point == "session_listed":
            await client.initialize()
            await client.request("session/list")
            assert len(await client.rest()) == 1
        else:
            await client.prompt(await client.new())
            assert len(await client.rest()) == {"turn_started": 0, "turn_ended": 3}[point]
        assert client.raw.ended == RESET


@pytest.mark.parametrize("point", ["session_opened", "turn_started", "turn_ended", "session_listed"])
async def test_an_aap_connection_can_end_at_a_point(point: str) -> None:
    async with serving(TALK + f"faults: [{{at: {point}, disconnect: reset}}]") as server:
        aap = await server.aap()
        if point == "session_listed":
            assert (await aap.call("GET", "/sessions")).complete
        elif point == "session_opened":
            assert (await aap.call("POST", "/sessions", {"agent": {"name": "mock-agent"}})).complete
        else:
            await aap.begin(await aap.new())
            reply = await aap.reply()
            if point == "turn_ended":
                assert reply is not None
                assert reply.told == ["one", "two"]
                assert reply.events[-1][0] == "turn_stop"
            else:
                assert reply is None
        assert (await aap.raw.rest()).endswith(RESET)


async def test_points_know_their_session_and_turn(autojump_clock: Any) -> None:
    async with serving(
        TALK + "faults: [{at: turn_ended, when: {turn: 2, protocol: acp}, disconnect: {code: 4000}}]"
    ) as server:
        client = await server.client()
        session = await client.new()
        await client.turn(session)
        other = await client.new()
        await client.turn(other)
        await client.turn(session)
        assert await client.rest() == []
        assert isinstance(client.link, Socket)
        assert client.link.closed == 4000
        assert [detail["session"] for detail in server.seen.of("fault")] == [session]


async def test_idle_comes_when_all_has_been_said(autojump_clock: Any) -> None:
    turns = "turns: [{steps: [{say: one}, {wait: 5s}, {say: two}]}]\n"
    async with serving(turns + "faults: [{at: idle, when: {nth: 3}, disconnect: reset}]") as server:
        client = await server.client()
        start = trio.current_time()
        session = await client.new()
        await client.turn(session)
        assert said(client.seen) == ["one", "two"]
        await client.rest()
        assert client.raw.ended == RESET
        assert trio.current_time() - start == 5
