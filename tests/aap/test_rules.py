"""Rules about clients, each with a client that keeps it and one that breaks it."""

from __future__ import annotations

import pytest

from mockagent.aap.rules import RULES
from mockagent.aap.secrets import pointers, values
from mockagent.scenario.load import load_text
from mockagent.watch.audit import Audit

SEARCH = """
agent: {tools: [{name: a}, {name: b}]}
turns: [{steps: [{together: [{tool: {name: a, id: A}}, {tool: {name: b, id: B}}]}]}]
"""
AGENT = {"name": "mock-agent", "tools": [{"name": "a"}, {"name": "b"}]}


def grant(id):
    return {"role": "tool_permission", "toolCallId": id, "granted": True}


async def judged(serve):
    audit = Audit(list(RULES))
    server = await serve(SEARCH, taps=[audit])
    return server, await server.create(agent=AGENT), lambda id: audit.tallies[id].state


async def test_a_client_that_answers_all_calls_keeps_the_rule(serve):
    server, session, state = await judged(serve)
    await server.events(session, "hi")
    await server.events(session, grant("A"), grant("B"))
    assert state("AAP-TOOLS-01") == "met"


async def test_a_user_message_in_between_is_not_judged(serve):
    server, session, state = await judged(serve)
    await server.events(session, "hi")
    assert (await server.turn(session, "never mind")).status_code == 400
    assert state("AAP-TOOLS-01") == "not exercised"


@pytest.mark.parametrize(
    ("rule", "messages"),
    [("AAP-TOOLS-01", [grant("A")]), ("AAP-TOOLS-02", [grant("A"), grant("B"), grant("C")])],
)
async def test_a_client_that_answers_others_breaks_it(serve, rule, messages):
    server, session, state = await judged(serve)
    await server.events(session, "hi")
    assert (await server.turn(session, *messages)).status_code == 400
    assert state(rule) == "broken"


def test_secrets_are_found_in_scenarios():
    text = "name: x\nagent: {auth: {tokens: [abc]}, options: [{id: 'a/b', name: K, type: secret, value: s3cret}]}"
    scenario = load_text(text)
    assert pointers([scenario]) == {
        "POST /sessions": ["/agent/options/a~1b"],
        "POST /sessions/*/turns": ["/agent/options/a~1b"],
    }
    assert values([scenario]) == ["abc", "s3cret"]
    assert pointers([load_text("name: y")]) == {}
