"""The floor: trio, h11 and nothing else. Answers a POST with events made beforehand, each framed and written alone."""

from __future__ import annotations

import sys
from functools import partial

import h11
import trio

EVENT = b'event: text_delta\ndata: {"delta":"word "}\n\n'
STOP = b'event: turn_stop\ndata: {"stopReason":"end_turn"}\n\n'
HEAD = [("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked")]


async def answer(chunks: int, stream: trio.SocketStream) -> None:
    """One connection, with one request."""
    connection = h11.Connection(h11.SERVER)
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await stream.receive_some())
        elif isinstance(event, h11.EndOfMessage):
            await stream.send_all(connection.send(h11.Response(status_code=200, headers=HEAD)) or b"")
            for _ in range(chunks):
                await stream.send_all(connection.send(h11.Data(EVENT)) or b"")
            await stream.send_all(connection.send(h11.Data(STOP)) or b"")
            await stream.send_all(connection.send(h11.EndOfMessage()) or b"")
            return
        elif isinstance(event, h11.ConnectionClosed):
            return


async def main(port: int, chunks: int) -> None:
    """Listens."""
    await trio.serve_tcp(partial(answer, chunks), port, host="127.0.0.1")


trio.run(main, int(sys.argv[1]), int(sys.argv[2]))
