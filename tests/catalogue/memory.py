"""A bundled scenario at the other end of two streams in memory: stdio without a process.

Every piece that comes is one write of the agent, and time is the test's.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import trio
from trio.testing import memory_stream_one_way_pair

from mockagent.acp.stdio import serve_stdio
from mockagent.host import Host, Options
from mockagent.scenario.load import load
from mockagent.script.driver import drive
from tests.catalogue.judged import Court
from tests.faults.wire import Client, Raw

PATIENCE = 3600
"""Seconds of the test's clock, which jumps."""

MOST = 1 << 24
"""Bytes of the largest piece."""


class Lines:
    """The link of a client over stdio; blank lines are skipped, as clients do."""

    def __init__(self, raw: Raw) -> None:
        self.raw = raw

    async def post(self, text: bytes) -> None:
        await self.raw.write(text + b"\n")

    async def text(self) -> bytes | None:
        while (line := await self.raw.until(b"\n")) is not None:
            if line.strip():
                return line[:-1]
        return self.raw.take(len(self.raw.held)) or None


@asynccontextmanager
async def over_lines(court: Court) -> AsyncIterator[Client]:
    """Plays the court's scenario to a client that it judges."""
    host = Host([load(court.path)], Options())
    to_agent, from_client = memory_stream_one_way_pair()
    to_client, from_agent = memory_stream_one_way_pair()
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            host.backstage.start()
            nursery.start_soon(drive, host.stage)
            nursery.start_soon(serve_stdio, host.backstage, host.agents[0], from_client, to_client)
            yield court.client(Lines(Raw(partial(from_agent.receive_some, MOST), to_agent.send_all)))
            nursery.cancel_scope.cancel()


def framing_problems(data: bytes) -> list[str]:
    """What keeps bytes from being lines of one JSON text each, with a LF behind each and nothing else."""
    *lines, rest = data.split(b"\n")
    wrong = [f"line {number}: {line[:80]!r}" for number, line in enumerate(lines, 1) if not _is_one_text(line)]
    return wrong + ([f"no line end behind {rest[-80:]!r}"] if rest else [])


def _is_one_text(line: bytes) -> bool:
    try:
        json.loads(line.decode())  # strictly: bytes would be let pass with a byte order mark
    except ValueError:
        return False
    return line == line.strip()
