"""ACP over one WebSocket: a frame is a message; text frames out, text or binary frames in.

The public proposal lets binary frames be ignored; released clients send them, so they are taken if they hold JSON.

Source: ACP proposal "Streamable HTTP & WebSocket Transport", WebSocket.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import trio

from mockagent.acp.connection import Connection
from mockagent.acp.exchange import Exchange
from mockagent.message import Burst, Message, Peer, Shape
from mockagent.net.frames import encode_fragments, encode_ping, encode_text, encode_texts
from mockagent.script.agent import Agent
from mockagent.wire.backstage import Backstage
from mockagent.wire.line import Line
from mockagent.wire.outgoing import Outgoing
from mockagent.wire.text import cut, escaped

if TYPE_CHECKING:
    from mockagent.net.http_message import HeaderList, Request
    from mockagent.net.http_reply import Responder

CONNECTION_HEADER = "Acp-Connection-Id"
COOKIE = "acp_affinity"
"""A cookie that clients have to send back, as a load balancer would set it."""
PING_INTERVAL = 30.0
"""Seconds between two pings."""
PING_PATIENCE = 20.0
"""Seconds without a pong after which a peer counts as dead."""


class FrameFramer:
    """One message a frame; a fault may want another opcode, fragments, a line end inside, or a ping before it."""

    def encode(self, message: Message) -> bytes | list[bytes]:
        """The bytes of one message, with its frame header."""
        text = message.text
        shape = message.shape
        if shape is None:
            return encode_text(text)
        if shape.escape_ascii:
            text = escaped(text)
        if shape.newline is not None:
            text += shape.newline
        frames = _frames(text, shape)
        if shape.comment is not None:
            frames[0] = encode_ping(shape.comment.encode()) + frames[0]
        return frames if len(frames) > 1 else frames[0]

    def encode_burst(self, burst: Burst) -> bytes:
        """All messages, each in its frame, in one piece of bytes."""
        return encode_texts(burst.texts)


def _frames(text: bytes, shape: Shape) -> list[bytes]:
    if shape.pieces:
        return [encode_text(piece, binary=shape.binary) for piece in cut(text, shape.pieces)]
    if shape.fragments:
        return encode_fragments(text, shape.fragments, binary=shape.binary)
    return [encode_text(text, binary=shape.binary)]


async def serve_websocket(backstage: Backstage, agent: Agent, request: Request, responder: Responder) -> None:
    """Lets a client in, to whom an agent is played then.

    Args:
        backstage: shared services.
        agent: who plays.
        request: the upgrade request, which has passed `handshake_problem`.
        responder: hands over the connection.

    Raises:
        Broken: a fault has left the client without an answer.
    """
    peer = backstage.peer("acp", "ws")
    id = backstage.connection_id()
    cookie = f"{COOKIE}={id}; Path=/acp; HttpOnly; SameSite=Lax"
    exchange = Exchange(backstage, peer, request, responder)
    if not await exchange.admit():
        return
    headers = await exchange.upgraded({CONNECTION_HEADER: id, "Set-Cookie": cookie})
    if headers is not None:
        exchange.take_over(partial(_play, backstage, agent, peer, headers, address(request)))


async def _play(
    backstage: Backstage,
    agent: Agent,
    peer: Peer,
    headers: HeaderList,
    address: str,
    stream: trio.SocketStream,
    head: bytes,
) -> None:
    """Plays the agent; returns when the WebSocket has ended."""
    from mockagent.net.websocket import accept_websocket

    async with accept_websocket(stream, head, extra_headers=headers) as socket:
        line = Line(peer, FrameFramer(), backstage, socket.channel)
        out = Outgoing(peer, backstage, line)
        connection = Connection(backstage, agent, peer, out)
        socket.answers_ping = partial(_answers_ping, backstage, out)
        stall = backstage.arrive(out, agent=agent.scenario.name, address=address)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(line.run)
                nursery.start_soon(socket.ping_loop, PING_INTERVAL, PING_PATIENCE)
                binary = False
                await stall.wait()
                async for message in socket:
                    if message.binary and not binary:
                        binary = True
                        backstage.note("binary_frame", peer)
                    connection.receive(message.data)
                    await stall.wait()
                    await line.with_room()
                nursery.cancel_scope.cancel()
        finally:
            connection.lost()
            code, reason = socket.closed or (1006, "")
            backstage.depart(peer, code=code, reason=reason, **({"why": "no pong"} if socket.dead else {}))


def _answers_ping(backstage: Backstage, out: Outgoing) -> bool:
    life = backstage.point("ping", out)
    return life is None or not life.ignore


def address(request: Request) -> str:
    """Where a client connects from, for the log."""
    return "" if request.peer is None else f"{request.peer[0]}:{request.peer[1]}"
