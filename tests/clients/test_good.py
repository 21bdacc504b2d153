"""A well-behaved client breaks no rule, whatever the agent does: every bundled scenario is played to two of them."""

from __future__ import annotations

import gc
from typing import Any

import httpx
import pytest
import trio

from mockagent.acp.rules import RULES
from mockagent.scenario import library
from mockagent.testing import MockAgent
from tests.clients.good import Good
from tests.clients.good_aap import GoodAap
from tests.clients.registry import broken
from tests.clients.speaker import ABLE, INFO, polite
from tests.network import serving

HOURS = 24 * 3600.0


@pytest.mark.parametrize("patient", [False, True], ids=["answers", "cancels"])
@pytest.mark.parametrize("scenario", library.names())
async def test_a_good_client_breaks_no_rule(scenario: str, patient: bool, autojump_clock: object) -> None:
    with trio.fail_after(HOURS):  # of the run's own clock
        connects = (
            library.open_scenario(scenario).agent.mcp != "check"
        )  # in threads, which know no clock but the wall's
        async with MockAgent(scenario).in_memory() as mock:
            client = Good(mock.connect(), patient=patient, servers=not connects)
            await client.live()
            report = mock.report()
    assert not broken(report), report["text"]
    assert report["problems"] == []
    assert client.seen or report["faults"], "it has met an agent"


BROAD = ("everything", "demo", "modes-and-options", "million-sessions", "permissions", "stops/cancelled", "auth")
"""Scenarios that between them ask for all that a client can do."""

BESIDE = {"ACP-INIT-05", "ACP-ELICIT-02", "ACP-TERMINAL-02"}
"""Rules that only another agent, or another client, can come to keep."""


async def test_a_good_client_keeps_every_rule_of_stdio(autojump_clock: object) -> None:
    met: set[str] = set()
    for scenario in BROAD:
        async with MockAgent(scenario).in_memory() as mock:
            await Good(mock.connect(), patient=scenario == "permissions").live()
            met |= {rule["id"] for rule in mock.report()["rules"] if rule["met"]}
    there = {rule.id for rule in RULES if not rule.transports or "stdio" in rule.transports}
    assert there - met == BESIDE


ELSEWHERE = ("stdio/", "websocket/")
"""Folders of scenarios about transports that AAP does not have."""

AAP = [name for name in library.names() if not name.startswith(ELSEWHERE)]


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # httpx, cancelled, leaves sockets behind
@pytest.mark.parametrize("scenario", AAP)
async def test_a_good_client_breaks_no_rule_of_aap(scenario: str) -> None:
    if not library.open_scenario(scenario).agent.aap:
        pytest.skip("it is an agent of ACP alone")
    async with MockAgent(scenario, speed=0) as mock:
        async with httpx.AsyncClient(base_url=mock.aap_url, timeout=None, verify=False) as http:
            await GoodAap(http).live()
        report = mock.report()
    gc.collect()
    assert not broken(report), report["text"]
    assert report["problems"] == []


@pytest.mark.parametrize("over", ["ws", "http"])
async def test_a_good_client_breaks_no_rule_over_the_network(over: str) -> None:
    async with serving(library.open_scenario("everything")) as mock:
        async with mock.ws() if over == "ws" else mock.http() as client:
            client.answers = {method: answers(body) for method, body in polite().items()}
            hello = {"protocolVersion": 1, "clientCapabilities": ABLE, "clientInfo": INFO}
            await client.call("initialize", hello)
            session = await client.new()
            assert "result" in await client.prompt(session)
        report = mock.host.report.as_json() | {"text": mock.host.report.text()}
    assert not broken(report), report["text"]
    assert report["problems"] == []
    met = {rule["id"] for rule in report["rules"] if rule["met"]}
    own = {rule.id for rule in RULES if rule.transports == (over,)}
    assert own <= met


def answers(body: Any) -> Any:
    """The result of an answer, or a function of the params that gives it."""
    return (lambda params: body({"params": params})["result"]) if callable(body) else body["result"]
