"""The scenarios about WebSockets, each played to a client that looks at single frames of a real socket."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from tests.catalogue.judged import Catalogue, Played
from tests.faults.wire import CWD, RESET, Client, Frame, Served, Socket, kinds, said

WEBSOCKET = Catalogue("websocket")


async def connected(served: Served) -> tuple[Client, Socket]:
    """A client, and the socket that it speaks through."""
    socket = await served.websocket()
    return Client(socket), socket


async def frames(served: Served) -> tuple[list[Any], list[Frame]]:
    """The messages and the frames of one turn."""
    client, socket = await connected(served)
    session = await client.new()
    before = len(socket.frames)
    messages = await client.turn(session)
    return messages, socket.frames[before:]


async def handshake(served: Served, **headers: str) -> tuple[int, dict[str, str]]:
    """Status and headers of the answer to a handshake."""
    head = (await Socket(await served.connect()).shake("/acp", headers)).decode()
    status, *lines = head.strip().split("\r\n")
    fields = (line.split(": ", 1) for line in lines)
    return int(status.split()[1]), {name.lower(): value for name, value in fields}


@WEBSOCKET.shows("ws-reset")
async def _(played: Played) -> None:
    client, session, _ = await played.start()
    assert said(await client.rest()) == ["Half a sen"]
    assert client.raw.ended == RESET
    await trio.sleep(1)
    again, socket = await connected(played.served)
    await again.initialize()
    await again.call("session/load", sessionId=session, cwd=CWD, mcpServers=[])
    assert "".join(said(again.seen)) == "Half a sentence, and the rest of it."
    assert kinds(await again.turn(session))[-1] == "result"
    assert not [frame for frame in socket.frames if frame.opcode == 8]


@WEBSOCKET.shows("ws-large-message")
async def _(played: Played) -> None:
    large, small = said(await played.turn())
    assert (len(large), small) == (2 << 20, "Done.")
    _, seen = await frames(played.served)
    assert (seen[0].opcode, seen[0].fin) == (1, True)
    assert len(seen[0].payload) > 2 << 20


@WEBSOCKET.shows("ws-binary", breaks="a message is a text frame")
async def _(played: Played) -> None:
    messages, seen = await frames(played.served)
    assert [frame.opcode for frame in seen] == [1, 2, 1, 1]
    assert said(messages) == ["One. ", "Two. ", "Three."]


@WEBSOCKET.shows("ws-newline")
async def _(played: Played) -> None:
    assert said(await played.turn()) == ["One. ", "Two. ", "Three. ", "Four."]
    _, seen = await frames(played.served)
    assert [frame.payload[frame.payload.rindex(b"}") + 1 :] for frame in seen[:4]] == [b"\n", b"\r\n", b"\n\n", b""]
    assert seen[2].payload.startswith(b"  {")


@WEBSOCKET.shows("ws-subprotocol", breaks="a server chooses a subprotocol that was offered")
async def _(played: Played) -> None:
    asked = [await handshake(played.served, **{"Sec-WebSocket-Protocol": "acp.v1"}) for _ in range(2)]
    assert [status for status, _ in asked] == [101, 101]
    assert [headers.get("sec-websocket-protocol") for _, headers in asked] == [None, "other.v9"]
    assert said(await played.turn()) == ["You are in."]


@WEBSOCKET.shows("ws-foreign-origin")
async def _(played: Played) -> None:
    pages = (None, "http://localhost:5173", "https://elsewhere.example", "http://localhost.elsewhere.example", "null")
    asked = [await handshake(played.served, **({"Origin": page} if page else {})) for page in pages]
    assert [status for status, _ in asked] == [101, 101, 403, 403, 403]
    assert said(await played.turn()) == ["You are in."]


@WEBSOCKET.shows("ws-fragmented")
async def _(played: Played) -> None:
    start = trio.current_time()
    assert said(await played.turn()) == ["Grüße aus Zürich. ", "東京は晴れです。"]
    assert trio.current_time() - start == pytest.approx(0.2, abs=0.05)
    _, seen = await frames(played.served)
    assert [(frame.opcode, frame.fin) for frame in seen[:4]] == [(1, False), (0, True)] * 2
    for head in (seen[0], seen[2]):
        with pytest.raises(UnicodeDecodeError):
            head.payload.decode()


@WEBSOCKET.shows("ws-empty-message")
async def _(played: Played) -> None:
    client, socket = await connected(played.served)
    await client.prompt(await client.new())
    got = [await socket.frame() for _ in range(4)]
    assert [(frame.opcode, frame.payload == b"") for frame in got if frame] == [
        (1, False), (1, True), (1, False), (1, False),
    ]  # fmt: skip
    assert len(await played.turn()) == 4  # for the judge, who finds that the second is no message


@WEBSOCKET.shows("ws-invalid-utf8")
async def _(played: Played) -> None:
    messages = await played.turn()
    assert [isinstance(one, bytes) for one in messages] == [False, True, True, False, False]
    for half in messages[1:3]:
        with pytest.raises(UnicodeDecodeError):
            half.decode()
    assert said([json.loads(messages[1] + messages[2])]) == ["Zwö. "]


@WEBSOCKET.shows("ws-closes-at-once")
async def _(played: Played) -> None:
    for _ in range(2):
        client, socket = await connected(played.served)
        assert await client.rest() == []
        assert socket.closed == 1013
    assert said(await played.turn()) == ["You are in."]


@WEBSOCKET.shows("ws-drop-mid-turn")
async def _(played: Played) -> None:
    client, _, _ = await played.start()
    assert said(await client.rest()) == ["Half a sen"]


@WEBSOCKET.shows("ws-ping-flood")
async def _(played: Played) -> None:
    assert len(said(await played.turn())) >= 300


@WEBSOCKET.shows("ws-close-codes")
async def _(played: Played) -> None:
    for _ in range(8):
        client, _, id = await played.start()
        await client.reply(id)
        assert await client.rest() == []


@pytest.mark.parametrize("name", WEBSOCKET.checks)
async def test_a_scenario_about_websockets_does_what_it_promises(autojump_clock: Any, name: str) -> None:
    await WEBSOCKET.play(name)
