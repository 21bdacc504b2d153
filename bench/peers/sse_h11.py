"""The floor for server-sent events: trio and h11. An event a write; everything leaves on one stream."""

from __future__ import annotations

import sys

import h11
import trio

EVENT = (
    b'data: {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":'
    b'"agent_message_chunk","messageId":"m","content":{"type":"text","text":"word "}}}}\n\n'
)
END = b'data: {"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}\n\n'
ANSWERS = {
    b"initialize": b'{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}',
    b"session/new": b'data: {"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}\n\n',
}

streams: dict[bytes, tuple[trio.SocketStream, h11.Connection]] = {}


async def answer(stream: trio.SocketStream, conn: h11.Connection, status: int, body: bytes = b"") -> None:
    """A whole reply."""
    headers = [("Content-Length", str(len(body))), ("Acp-Connection-Id", "c"), ("Content-Type", "application/json")]
    data = conn.send(h11.Response(status_code=status, headers=headers)) or b""
    data += (conn.send(h11.Data(data=body)) or b"") if body else b""
    await stream.send_all(data + (conn.send(h11.EndOfMessage()) or b""))


async def event(session: bytes, data: bytes) -> None:
    """One event in one write."""
    stream, conn = streams[session]
    await stream.send_all(conn.send(h11.Data(data=data)) or b"")


async def take(stream: trio.SocketStream, conn: h11.Connection, body: bytes) -> None:
    """A POST."""
    if b'"initialize"' in body:
        await answer(stream, conn, 200, ANSWERS[b"initialize"])
        return
    await answer(stream, conn, 202)
    if b'"session/new"' in body:
        await event(b"", ANSWERS[b"session/new"])
    if b'"session/prompt"' in body:
        for _ in range(int(sys.argv[1])):
            await event(b"s", EVENT)
        await event(b"s", END)


async def serve(stream: trio.SocketStream) -> None:
    """One TCP connection."""
    conn = h11.Connection(h11.SERVER)
    request, body = None, b""
    while True:
        got = conn.next_event()
        if got is h11.NEED_DATA:
            data = await stream.receive_some()
            if not data:
                return
            conn.receive_data(data)
        elif isinstance(got, h11.Request):
            request, body = got, b""
        elif isinstance(got, h11.Data):
            body += bytes(got.data)
        elif isinstance(got, h11.EndOfMessage) and request is not None:
            if request.method == b"GET":
                streams[dict(request.headers).get(b"acp-session-id", b"")] = (stream, conn)
                head = h11.Response(status_code=200, headers=[("Content-Type", "text/event-stream")])
                await stream.send_all(conn.send(head) or b"")
                await trio.sleep_forever()
            await take(stream, conn, body)
            conn.start_next_cycle()
        else:
            return


async def main() -> None:
    """Serves on a free port."""
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    print(f"listening on http://127.0.0.1:{port}", file=sys.stderr, flush=True)
    await trio.serve_listeners(serve, [listener])


trio.run(main)
