"""The `websockets` package and nothing else. A message a send, as its documentation shows."""

from __future__ import annotations

import asyncio
import sys

from websockets.asyncio.server import ServerConnection, serve

CHUNK = (
    '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":'
    '"agent_message_chunk","messageId":"m","content":{"type":"text","text":"word "}}}}'
)
ANSWERS = {
    "initialize": '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}',
    "session/new": '{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}',
}


async def play(socket: ServerConnection) -> None:
    """One client."""
    async for text in socket:
        for method, answer in ANSWERS.items():
            if f'"{method}"' in str(text):
                await socket.send(answer)
        if '"session/prompt"' in str(text):
            for _ in range(int(sys.argv[1])):
                await socket.send(CHUNK)
            await socket.send('{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}')


async def main() -> None:
    """Serves on a free port."""
    async with serve(play, "127.0.0.1", 0, compression=None) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        print(f"listening on http://127.0.0.1:{port}", file=sys.stderr, flush=True)
        await server.serve_forever()


asyncio.run(main())
