"""The floor for WebSocket: trio-websocket and nothing else. A message a send, as its documentation shows."""

from __future__ import annotations

import sys

import trio
import trio_websocket

CHUNK = (
    '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":'
    '"agent_message_chunk","messageId":"m","content":{"type":"text","text":"word "}}}}'
)
ANSWERS = {
    "initialize": '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}',
    "session/new": '{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}',
}


async def play(request: trio_websocket.WebSocketRequest) -> None:
    """One client."""
    socket = await request.accept()
    try:
        while True:
            text = await socket.get_message()
            for method, answer in ANSWERS.items():
                if f'"{method}"' in text:
                    await socket.send_message(answer)
            if '"session/prompt"' in text:
                for _ in range(int(sys.argv[1])):
                    await socket.send_message(CHUNK)
                await socket.send_message('{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}')
    except trio_websocket.ConnectionClosed:
        pass


async def main() -> None:
    """Serves on a free port."""
    async with trio.open_nursery() as nursery:
        server = await nursery.start(trio_websocket.serve_websocket, play, "127.0.0.1", 0, None)
        print(f"listening on http://127.0.0.1:{server.port}", file=sys.stderr, flush=True)


trio.run(main)
