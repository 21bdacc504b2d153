from __future__ import annotations

from typing import Any

import msgspec
import pytest

from mockagent.faults.select import POINTS, Selector, facts_of, is_outgoing, params_of, result_of
from mockagent.message import NO_ID, Message
from mockagent.scenario import kinds


@pytest.mark.parametrize(
    ("at", "kind", "neutral", "expected"),
    [
        ("session/list", "session/list", "list", True),
        ("list", "session/list", "list", True),
        ("list", "GET /sessions", "list", True),
        ("list", "list", None, False),
        ("session/*", "session/load", "load", True),
        ("GET /sessions", "GET /sessions/s1", None, False),
        ("POST /sessions/*/turns", "POST /sessions/a/b/turns", "turn", True),
        ("POST /acp", "POST /acp", None, True),
        ("say", "session/prompt", "say", False),
        ("*", "_ext/ping", None, True),
        ("answer:*", "answer:session/request_permission", None, True),
    ],
)
def test_what_comes_in_is_named_by_method_neutral_kind_or_glob(
    at: str, kind: str, neutral: str | None, expected: bool
) -> None:
    assert Selector(at).incoming(kind, neutral) is expected


@pytest.mark.parametrize(
    ("at", "kind", "neutral", "expected"),
    [
        ("reply:session/prompt", "reply:session/prompt", "stop", True),
        ("stop", "reply:session/prompt", "stop", True),
        ("stop", "event:turn_stop", "stop", True),
        ("session/prompt", "reply:session/prompt", "stop", False),
        ("list", "reply:session/list", "list", False),
        ("tool", "update:tool_call_update", "tool", True),
        ("update:agent_*_chunk", "update:agent_thought_chunk", "think", True),
        ("event:text_delta", "event:text", "say", False),
        ("request:*", "request:session/request_permission", None, True),
    ],
)
def test_what_goes_out_is_named_by_prefixed_kind_neutral_kind_or_glob(
    at: str, kind: str, neutral: str | None, expected: bool
) -> None:
    assert Selector(at).outgoing(kind, neutral) is expected


def test_points_in_life_are_named_by_themselves_or_a_glob_that_is_not_everything() -> None:
    assert Selector("eof").point("eof")
    assert Selector("turn_*").point("turn_ended")
    assert not Selector("*").point("eof")
    assert not Selector("session_opened").point("session_listed")


def test_the_direction_shows_in_the_kind() -> None:
    assert all(is_outgoing(kind) for kind in ("raw", "reply:x", "update:x", "request:x", "notify:x", "event:x"))
    assert not any(is_outgoing(kind) for kind in ("session/list", "answer:x", "GET /sessions"))


def test_params_are_those_of_the_message_whatever_the_protocol(host: Any) -> None:
    assert params_of(host.request("session/new", cwd="/a")) == {"cwd": "/a"}
    assert params_of(host.http("GET /sessions", query={"after": "x"})) == {"after": "x"}
    assert params_of(host.http("POST /sessions", body={"agent": {}}, query={"a": "b"})) == {"a": "b", "agent": {}}
    assert params_of(host.event("text_delta", {"delta": "x"})) == {"delta": "x"}
    assert params_of(host.reply("session/new")) is msgspec.UNSET
    assert params_of(Message("raw", "text", host.peer)) is msgspec.UNSET


def test_the_result_of_a_reply_is_its_member_or_its_body_or_its_error(host: Any) -> None:
    assert result_of(host.reply("session/new", result={"sessionId": "s"})) == {"sessionId": "s"}
    assert result_of(host.http_reply("POST /sessions", body={"sessionId": "s"})) == {"sessionId": "s"}
    assert result_of(host.request("session/new")) is msgspec.UNSET
    failed = host.reply("session/list")
    failed.data = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602}}
    assert result_of(failed) == {"error": {"code": -32602}}


def test_json_rpc_that_travels_in_http_is_json_rpc(host: Any) -> None:
    message = host.request("session/new", cwd="/a")
    message.http = host.http("POST /acp").http
    assert params_of(message) == {"cwd": "/a"}


def test_the_message_itself_says_where_it_comes_from(host: Any) -> None:
    message = host.request("session/new", NO_ID, session="s1")
    facts = facts_of(message, {"mode": "ask", "origin": "turn"}, None, str)
    assert (facts["mode"], facts["origin"], facts["session"]) == ("ask", "client", "s1")
    assert (facts["protocol"], facts["transport"], facts["connection"]) == ("acp", "stdio", "c1")


def test_a_reply_is_held_against_the_params_of_its_request(host: Any) -> None:
    request, reply = host.request("session/list", cwd="/a"), host.reply("session/list", result={"sessions": []})
    facts = facts_of(reply, {}, request, str)
    assert (facts["params"], facts["result"]) == ({"cwd": "/a"}, {"sessions": []})


def test_points_in_life_are_those_that_the_format_knows() -> None:
    assert set(kinds.POINTS) == POINTS
