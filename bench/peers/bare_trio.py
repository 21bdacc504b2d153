"""The floor: trio and nothing else. Answers `initialize` and writes updates made beforehand, one line a write."""

from __future__ import annotations

import sys

import trio

LINE = (
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":'
    b'"agent_message_chunk","messageId":"m","content":{"type":"text","text":"word "}}}}\n'
)
ANSWERS = {
    b"initialize": b'{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}\n',
    b"session/new": b'{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}\n',
}


async def main(chunks: int) -> None:
    """Reads requests a line at a time; a prompt is answered with so many chunks."""
    receive, send = trio.lowlevel.FdStream(0), trio.lowlevel.FdStream(1)
    held = b""
    async for data in receive:
        *lines, held = (held + data).split(b"\n")
        for line in lines:
            for method, answer in ANSWERS.items():
                if b'"%s"' % method in line:
                    await send.send_all(answer)
            if b'"session/prompt"' in line:
                for _ in range(chunks):
                    await send.send_all(LINE)
                await send.send_all(b'{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}\n')


trio.run(main, int(sys.argv[1]))
