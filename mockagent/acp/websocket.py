"""ACP over one WebSocket: a frame is a message; text frames out, text or binary frames in.

The public proposal lets binary frames be ignored; released clients send them, so they are taken if they hold JSON.

Source: ACP proposal "Streamable HTTP & WebSocket Transport", WebSocket.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from mockagent.acp.connection import Connection
from mockagent.message import Burst, Message
from mockagent.net.frames import encode_fragments, encode_text, encode_texts
from mockagent.script.agent import Agent
from mockagent.wire.backstage import Backstage
from mockagent.wire.line import Line
from mockagent.wire.outgoing import Outgoing
from mockagent.wire.text import cut, escaped

if TYPE_CHECKING:
    from mockagent.net.http_message import Request
    from mockagent.net.http_reply import Responder

CONNECTION_HEADER = "Acp-Connection-Id"
PING_INTERVAL = 30.0
"""Seconds between two pings."""
PING_PATIENCE = 20.0
"""Seconds without a pong after which a peer counts as dead."""


class FrameFramer:
    """One message a frame; a fault may want another opcode, fragments, or a line end inside."""

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
        if shape.pieces:
            return [encode_text(piece, binary=shape.binary) for piece in cut(text, shape.pieces)]
        if shape.fragments:
            return encode_fragments(text, shape.fragments, binary=shape.binary)
        return encode_text(text, binary=shape.binary)

    def encode_burst(self, burst: Burst) -> bytes:
        """All messages, each in its frame, in one piece of bytes."""
        return encode_texts(burst.texts)


async def serve_websocket(backstage: Backstage, agent: Agent, request: Request, responder: Responder) -> None:
    """Plays an agent to one client; returns when the WebSocket has ended.

    Args:
        backstage: shared services.
        agent: who plays.
        request: the upgrade request, which has passed `handshake_problem`.
        responder: hands out the connection.
    """
    from mockagent.net.websocket import accept_websocket

    peer = backstage.peer("acp", "ws")
    stream, behind = await responder.take_over()
    headers = [(CONNECTION_HEADER, backstage.connection_id())]
    async with accept_websocket(stream, request.head() + behind, extra_headers=headers) as socket:
        line = Line(peer, FrameFramer(), backstage, socket.channel)
        out = Outgoing(peer, backstage, line)
        connection = Connection(backstage, agent, peer, out)
        stall = backstage.arrive(out)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(line.run)
                nursery.start_soon(socket.ping_loop, PING_INTERVAL, PING_PATIENCE)
                async for message in socket:
                    connection.receive(message.data)
                    await stall.wait()
                    await line.with_room()
                nursery.cancel_scope.cancel()
        finally:
            connection.lost()
            code, reason = socket.closed or (1006, "")
            backstage.depart(peer, code=code, reason=reason)
