"""The event loop in which a test may run: whether there is one, and how to wait in it for the mock's thread."""

from __future__ import annotations

import sys
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

import trio

T = TypeVar("T")


def in_event_loop() -> bool:
    """Whether whoever calls is a task, and so keeps others from running."""
    if trio.lowlevel.in_trio_task():
        return True
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and asyncio._get_running_loop() is not None


async def awaited(future: Future[T]) -> T:
    """Waits for a future in whatever event loop this is."""
    if trio.lowlevel.in_trio_task():
        await _awaited_in_trio(future)
        return future.result()
    import asyncio

    return await asyncio.wrap_future(future)


async def _awaited_in_trio(future: Future[Any]) -> None:
    there = trio.Event()
    token = trio.lowlevel.current_trio_token()

    def tell(done: Future[Any]) -> None:
        with suppress(trio.RunFinishedError):
            token.run_sync_soon(there.set)

    future.add_done_callback(tell)
    await there.wait()
