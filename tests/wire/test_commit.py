"""What a client is told has been kept before it is told."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from mockagent.acp.stdio import LineFramer
from mockagent.wire.line import Line


@pytest.mark.parametrize(("kind", "final"), [("message", True), ("burst", False)])
async def test_the_commit_comes_before_the_write(hand: Any, shelf: Any, kind: str, final: bool) -> None:
    seen: list[tuple[int, bool]] = []
    hand.commit = lambda *, final: seen.append((len(shelf.writes), final))
    line = Line(hand.peer, LineFramer(), hand, shelf)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(line.run)
        await wait_all_tasks_blocked()
        if kind == "message":
            line.put(hand.message(0))
        else:
            line.put_burst(hand.burst(0, 1))
        await line.drained()
        nursery.cancel_scope.cancel()
    assert seen == [(0, final)]
    assert len(shelf.writes) == 1
