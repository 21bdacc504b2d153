"""What a process knows by itself: the rules of the protocols that are spoken, and the secrets of its scenarios."""

from __future__ import annotations

from mockagent.host import Host, Options
from mockagent.message import Message, Peer
from mockagent.scenario.load import load_text

PLAIN = "name: plain"
GUARDED = """
name: guarded
agent:
  auth: {tokens: [token-0123456789]}
  options: [{id: key, name: Key, type: secret, value: value-0123456789}]
"""


async def test_the_rules_are_those_of_the_protocols_that_are_spoken():
    both = {rule.protocol for rule in Host([load_text(PLAIN)], Options()).rules}
    alone = {rule.protocol for rule in Host([load_text(PLAIN)], Options(), protocols=("acp",)).rules}
    assert (both, alone) == ({"acp", "aap"}, {"acp"})


async def test_a_restart_with_another_scenario_learns_its_secrets():
    host = Host([load_text(PLAIN)], Options())
    host.restart([load_text(GUARDED)])
    body = {"agent": {"options": {"key": "typed by a client"}}, "said": ["token-0123456789", "value-0123456789"]}
    text = host.redactor.text(Message("POST /sessions", body, Peer("c1", "aap", "http")))
    assert text == b'{"agent":{"options":{"key":"***"}},"said":["***","***"]}'
