"""Each rule has a client that breaks it, and each of those clients breaks just that rule."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import trio

from mockagent.aap.rules import RULES as AAP_RULES
from mockagent.acp.rules import RULES as ACP_RULES
from mockagent.scenario.load import load_text
from mockagent.testing import MockAgent
from mockagent.watch.report import Report
from tests.clients import aap, acp_remote, acp_stdio
from tests.clients.registry import CLIENTS, Client, broken
from tests.clients.speaker import Speaker
from tests.network import serving

PATIENCE = 60
RULES = [*ACP_RULES, *AAP_RULES]

PLAYED = (acp_stdio, acp_remote, aap)
"""Importing them has filled the list."""


async def on_stdio(client: Client) -> dict[str, Any]:
    agent = MockAgent(load_text(f"name: victim\n{client.scenario}"), speed=0)
    async with agent.in_memory() as mock:
        speaker = Speaker(mock.connect())
        await client.play(speaker)
        await speaker.leave()
        return mock.report()


async def on_network(client: Client) -> dict[str, Any]:
    async with serving(client.scenario) as mock:
        report: Report = mock.host.report
        if client.over == "ws":
            async with mock.ws() as ws:
                await client.play(ws)
        elif client.over == "http":
            async with mock.http() as web:
                await client.play(web)
        else:
            async with httpx.AsyncClient(
                base_url=f"http://127.0.0.1:{mock.port}/aap", timeout=PATIENCE, verify=False
            ) as http:
                await client.play(http)
        return report.as_json() | {"text": report.text()}


PLAYERS = {"stdio": on_stdio, "ws": on_network, "http": on_network, "aap": on_network}


def test_every_rule_has_a_client_that_breaks_it() -> None:
    assert CLIENTS.keys() == {rule.id for rule in RULES}


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS.keys())
async def test_a_misbehaving_client_breaks_its_rule_and_no_other(client: Client) -> None:
    with trio.fail_after(PATIENCE):
        report = await PLAYERS[client.over](client)
    assert broken(report) == {client.rule}, report["text"]
    assert report["problems"] == []
    [breach] = [one for one in report["breaches"] if one["rule"] == client.rule][:1]
    assert breach["shown"], "a breach shows what shows it"
    assert report["failed"]
