"""Carries out the operations of one write, for every kind of channel alike.

A channel says how it sends bytes; this module decides what is joined, when to wait and where to stop. It knows nothing
of sockets or frames.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import trio

from mockagent.net.channel import Bytes, Cut, Op, Pause, Rate

Send = Callable[[bytes], Awaitable[None]]

DRIP = 0.05
"""Seconds between two pieces of a `Rate`, where a byte does not take longer than that."""


async def carry_out(ops: Sequence[Op], send: Send) -> Cut | None:
    """Sends bytes and waits, in order, up to the first `Cut`.

    Neighbouring `Bytes` leave in one send, unless they are `alone`. Nothing is sent for empty bytes.

    Args:
        ops: what to do.
        send: sends some bytes whole; what it raises ends the work.

    Returns:
        The `Cut` that was reached, for the caller to carry out, or None. Operations behind it are dropped.
    """
    if len(ops) == 1 and type(only := ops[0]) is Bytes:
        if only.data:
            await send(only.data)
        return None
    held: list[bytes] = []
    for op in ops:
        if type(op) is Bytes and not op.alone:
            held.append(op.data)
            continue
        await _flush(held, send)
        if isinstance(op, Cut):
            return op
        if isinstance(op, Pause):
            await trio.sleep(max(0.0, op.seconds))
        elif isinstance(op, Rate):
            await _drip(op, send)
        elif op.data:
            await send(op.data)
    await _flush(held, send)
    return None


async def _flush(held: list[bytes], send: Send) -> None:
    data = b"".join(held)
    held.clear()
    if data:
        await send(data)


async def _drip(rate: Rate, send: Send) -> None:
    """Sends pieces as large as the rate allows in a short while, and waits after each for as long as it is worth."""
    if rate.bytes_per_second <= 0:
        await trio.sleep_forever()
    step = max(1, int(min(rate.bytes_per_second * DRIP, len(rate.data))))
    for start in range(0, len(rate.data), step):
        piece = rate.data[start : start + step]
        await send(piece)
        await trio.sleep(len(piece) / rate.bytes_per_second)
