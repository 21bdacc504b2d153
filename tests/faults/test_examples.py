"""The loader's own example of each effect, loaded and fired: both tables mean the same values."""

from __future__ import annotations

from typing import Any

import pytest

from mockagent.faults.engine import Engine
from mockagent.faults.interface import Hold, Page, Pass, Query
from mockagent.message import NO_ID, Message
from mockagent.scenario.effects import EFFECTS
from mockagent.scenario.load import load_text


def converse(host: Any, engine: Engine, message: Message, reply: Message) -> None:
    """A request, its page if it asks for one, its reply, and the bytes of that."""
    for act in engine.arriving(message):
        if isinstance(act, Pass) and message.neutral == "list":
            page = Page(rows=[{"sessionId": "sess_auth", "title": "A"}], cursor="c")
            engine.listing(Query(peer=host.peer, request=act.message), page)
    leave(engine, reply)


def leave(engine: Engine, message: Message) -> None:
    for act in engine.leaving(message):
        if isinstance(act, Pass | Hold):
            engine.framing(act.message, act.message.text + b"\n")


def everything(host: Any, engine: Engine) -> None:
    """A little of all that can happen, three times."""
    for round in (1, 2, 3):
        engine.lifecycle("start", None)
        for number, (method, neutral) in enumerate(
            {"initialize": None, "session/list": "list", "session/load": "load", "session/new": "create"}.items()
        ):
            id = 10 * round + number
            converse(host, engine, host.request(method, id, neutral=neutral), host.reply(method, id))
        converse(host, engine, host.http("GET /acp", round), host.http_reply("GET /acp", round))
        leave(engine, host.chunk("東 and a text that is long enough to be cut"))
        info = {"sessionUpdate": "session_info_update", "title": "T"}
        params = {"sessionId": "s1", "update": info}
        leave(engine, Message("update:session_info_update", {"params": params}, host.peer, session="s1", origin="turn"))
        leave(engine, host.event("text_delta", {"delta": "x"}))
        leave(engine, host.event("turn_stop", {"stopReason": "end_turn"}, neutral="stop"))
        cancel = host.request("session/cancel", NO_ID, neutral="cancel", session="s1")
        engine.arriving(cancel)
        leave(engine, host.reply("session/prompt", round, session="s1"))
        engine.lifecycle("eof", host.peer)


@pytest.mark.parametrize("name", EFFECTS)
def test_the_example_of_an_effect_fires(host: Any, name: str) -> None:
    if name == "binary":
        host.peer = host.ws
    scenario = load_text(f"legality: violation\nfaults:\n  - {EFFECTS[name].example}\n")
    [rule] = scenario.faults
    everything(host, host.engine(rule))
    fired = [effects for _, effects, what in host.reports if what == "fired"]
    assert fired, host.reports
    assert all(name in effects for effects in fired)
    assert not [what for _, _, what in host.reports if what != "fired"]
