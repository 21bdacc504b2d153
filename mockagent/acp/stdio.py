"""ACP over stdio: one JSON text a line, LF, UTF-8, nothing else on stdout.

Reads lines, feeds the connection, and sees to the end: what was read is answered, and the process is gone within two
seconds of EOF.

Source: ACP v1, "Transports", stdio.
"""

from __future__ import annotations

import trio

from mockagent.acp.connection import Connection
from mockagent.jsonrpc.messages import INVALID_REQUEST
from mockagent.message import Burst, Message
from mockagent.net.lines import LineReader, Oversized
from mockagent.net.stdio import StdioChannel
from mockagent.script.agent import Agent
from mockagent.wire.backstage import Backstage, StallingStream
from mockagent.wire.line import Line
from mockagent.wire.outgoing import Outgoing
from mockagent.wire.text import cut, escaped

EOF_PLAY = 1.5
"""Seconds for which turns that were running at EOF may play on."""

EOF_DRAIN = 0.2
"""Seconds for which turns may take to be cancelled, and a client that does not read to take what was written."""


class LineFramer:
    """One message a line."""

    def encode(self, message: Message) -> bytes | list[bytes]:
        """The text and its line end; a fault may have chosen another one, want only ASCII, or several lines."""
        text = message.text
        shape = message.shape
        if shape is None:
            return text + b"\n"
        if shape.escape_ascii:
            text = escaped(text)
        end = b"\n" if shape.newline is None else shape.newline
        if shape.pieces:
            return [piece + end for piece in cut(text, shape.pieces)]
        return text + end

    def encode_burst(self, burst: Burst) -> bytes:
        """All texts, each with its line end."""
        return b"\n".join(burst.texts) + b"\n"


async def serve_stdio(
    backstage: Backstage, agent: Agent, receive: trio.abc.ReceiveStream, send: trio.abc.SendStream
) -> None:
    """Plays an agent to the client at the other end of two streams; returns when the client has left.

    Args:
        backstage: shared services; its stage has to be driven by somebody.
        agent: who plays.
        receive: what the client writes.
        send: what the client reads.
    """
    peer = backstage.peer("acp", "stdio")
    line = Line(peer, LineFramer(), backstage, StdioChannel(send))
    out = Outgoing(peer, backstage, line)
    connection = Connection(backstage, agent, peer, out)
    stall = backstage.arrive(out)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_write, line, nursery.cancel_scope)
        async for batch in LineReader(StallingStream(receive, stall)).batches():
            for text in batch:
                if isinstance(text, Oversized):
                    connection.refuse_text(b"", INVALID_REQUEST, "Invalid request: the line is too long")
                elif text.strip():
                    connection.receive(text)
            await line.with_room()
        await _end(backstage, agent, connection, line)
        nursery.cancel_scope.cancel()
    connection.lost()
    backstage.depart(peer)


async def _write(line: Line, reading: trio.CancelScope) -> None:
    await line.run()
    if not line.ended:  # the client closed its end: there is nobody left to read for
        reading.cancel()


async def _end(backstage: Backstage, agent: Agent, connection: Connection, line: Line) -> None:
    """What is left to do at EOF."""
    backstage.note("eof", connection.peer)
    life = backstage.point("eof", connection.out)
    if life is not None and life.ignore:
        await trio.sleep_forever()
    connection.deaf()
    agent.end_schedules()
    backstage.stage.hurried = True
    backstage.stage.wake()
    with trio.move_on_after(EOF_PLAY):
        await backstage.quiet()
    if agent.playing:
        agent.cancel_all()
        with trio.move_on_after(EOF_DRAIN):
            await backstage.quiet()
    with trio.move_on_after(EOF_DRAIN):
        await line.drained()
