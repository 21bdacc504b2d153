"""A client whose whole conversation is judged: does an agent break the rules exactly where its scenario says so?

Wraps the byte-level clients of `tests.faults.wire`; every message passes the judge on its way, in both directions.
Without the official schema (see `tests.official`) nothing is judged, and all else is tested.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mockagent.scenario.load import load
from tests.faults.wire import ROOT, Client, Link, Process, Raw, Reply, Served, process, serving
from tests.official import SCHEMA, official
from tests.transcript import Transcript

FOLDER = ROOT / "scenarios"

Json = dict[str, Any]


class _Overheard:
    """A link whose messages are shown to a judge."""

    def __init__(self, link: Link, judge: Transcript) -> None:
        self.raw: Raw = link.raw
        self._link = link
        self._judge = judge

    async def post(self, text: bytes) -> None:
        self._judge.to_agent(json.loads(text))
        await self._link.post(text)

    async def text(self) -> bytes | None:
        text = await self._link.text()
        if text is not None:
            try:
                message = json.loads(text)
            except ValueError:
                message = None
            self._judge.from_agent(message)
        return text


class Court:
    """The judges of one test, one for each client.

    Args:
        name: of a bundled scenario.
    """

    def __init__(self, name: str) -> None:
        self.path: Path = FOLDER / f"{name}.yaml"
        self._judges: list[Transcript] = []

    def client(self, link: Link) -> Client:
        """A client over a link, with a judge of its own."""
        if not SCHEMA.exists():
            return Client(link)
        self._judges.append(Transcript(official()))
        return Client(_Overheard(link, self._judges[-1]))

    @property
    def problems(self) -> list[str]:
        """All that the agent did wrong; what was never answered too."""
        for judge in self._judges:
            judge.ended()
        return [problem for judge in self._judges for problem in judge.problems]

    def verdict(self, rule: str | None) -> None:
        """Holds what was seen against the scenario's `legality`.

        Args:
            rule: the rule that a violation breaks, where no single message shows it; the test has to.
        """
        if not SCHEMA.exists():
            return
        legality, problems = load(self.path).legality, self.problems
        if legality == "allowed":
            assert not problems, problems
        elif legality == "violation":
            assert problems or rule, "marked a violation, and breaks no rule"
            assert not (problems and rule), f"the judge sees it without being told: {problems}"


class Played:
    """A scenario that is being served.

    Attributes:
        served: the server.
    """

    def __init__(self, court: Court, served: Served) -> None:
        self._court = court
        self.served = served

    async def client(self) -> Client:
        """Another client, over a WebSocket."""
        return self._court.client(await self.served.websocket())

    async def start(self, prompt: str = "go") -> tuple[Client, str, int]:
        """A client in the midst of a turn: itself, its session, and the id of the prompt."""
        client = await self.client()
        session = await client.new()
        return client, session, await client.prompt(session, prompt)

    async def turn(self, prompt: str = "go", **answers: Any) -> list[Any]:
        """One turn of a new client in a new session; `answers` go by the last part of the method."""
        client = await self.client()
        client.answers = {METHODS[name]: answer for name, answer in answers.items()}
        return await client.turn(await client.new(), prompt)

    @property
    def kept(self) -> bool:
        """Whether all expectations hold."""
        return not self.served.host.report.failed


METHODS = {
    "permission": "session/request_permission",
    "create": "terminal/create",
    "output": "terminal/output",
    "wait": "terminal/wait_for_exit",
    "kill": "terminal/kill",
    "release": "terminal/release",
}

Check = Callable[[Played], Awaitable[None]]


class Catalogue:
    """What the scenarios of one folder have to show, by name.

    Args:
        folder: its name.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.checks: dict[str, tuple[Check, str | None]] = {}

    def shows(self, name: str, *, breaks: str | None = None) -> Callable[[Check], Check]:
        """Registers a check; `breaks` is the rule that only the whole turn shows to be broken."""

        def register(check: Check) -> Check:
            self.checks[name] = check, breaks
            return check

        return register

    async def play(self, name: str) -> None:
        """Plays one to its check, and judges it."""
        check, rule = self.checks[name]
        court = Court(f"{self.folder}/{name}")
        async with serving(court.path) as served:
            await check(Played(court, served))
        court.verdict(rule)

    @property
    def bundled(self) -> set[str]:
        """The names of all scenarios of the folder."""
        return {file.stem for file in (FOLDER / self.folder).glob("*.yaml")}


async def over_aap(name: str) -> Reply:
    """One turn of a bundled scenario over AAP."""
    async with serving(FOLDER / f"{name}.yaml") as served:
        aap = await served.aap()
        return await aap.turn(await aap.new())


@asynccontextmanager
async def spawned(name: str, rule: str | None = None) -> AsyncIterator[tuple[Process, Client]]:
    """A real process that plays a bundled scenario over stdio, and its client; judged when all is over."""
    court = Court(name)
    async with process("acp", files=court.path) as child:
        yield child, court.client(child)
    court.verdict(rule)


def chose(option: str) -> Json:
    """The answer to a permission request that selects an option."""
    return {"outcome": {"outcome": "selected", "optionId": option}}


CANCELLED: Json = {"outcome": {"outcome": "cancelled"}}


def asked(messages: list[Any], method: str = "session/request_permission") -> list[Json]:
    """The params of all requests of a method."""
    return [message["params"] for message in messages if message.get("method") == method and "id" in message]


def updates(messages: list[Any], kind: str) -> list[Json]:
    """The bodies of all updates of a kind."""
    bodies = [message["params"]["update"] for message in messages if message.get("method") == "session/update"]
    return [body for body in bodies if body["sessionUpdate"] == kind]
