"""What must not be held against an ACP client: races that it cannot see, and what the mock has damaged on purpose."""

from __future__ import annotations

from typing import Any

import pytest

from mockagent.aap.rules import RULES as AAP_RULES
from mockagent.acp.rules import RULES
from mockagent.message import NO_ID, Fate, HttpHead, Message, Peer, Transport
from mockagent.watch.audit import Audit

Json = dict[str, Any]
PERMISSION = "session/request_permission"
OPTIONS = {"options": [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]}
HELLO: Json = {"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []}


class Talk:
    """One connection, message by message, as the taps see it."""

    def __init__(self, over: Transport = "stdio") -> None:
        self.audit = Audit(RULES)
        self.peer = Peer("c1", "acp", over)

    def came(self, method: str, params: Any = None, *, id: Any = 1, session: str | None = "s") -> None:
        """The client sends a request, or a notification (`id=NO_ID`)."""
        data = {"jsonrpc": "2.0", "method": method, "params": {} if params is None else params}
        data |= {} if id is NO_ID else {"id": id}
        self.audit.saw(Message(method, data, self.peer, session=session, id=id, method=method), "in", Fate.INTACT)

    def answered(self, method: str, id: Any, body: Json, session: str | None = "s") -> None:
        """The client answers."""
        data = {"jsonrpc": "2.0", "id": id, **body}
        message = Message(f"answer:{method}", data, self.peer, session=session, id=id, method=method)
        self.audit.saw(message, "in", Fate.INTACT)

    def left(self, kind: str, data: Any, *, id: Any = NO_ID, session: str | None = "s", damaged: str = "") -> None:
        """The mock sends something."""
        effects = (damaged,) if damaged else ()
        message = Message(kind, data, self.peer, session=session, id=id, method=kind.partition(":")[2], damaged=effects)
        message.origin = "turn"
        self.audit.saw(message, "out", Fate.DAMAGED if damaged else Fate.INTACT)

    def replied(self, method: str, result: Any, *, id: Any = 1, session: str | None = "s", damaged: str = "") -> None:
        self.left(f"reply:{method}", {"id": id, "result": result}, id=id, session=session, damaged=damaged)

    def asked(self, method: str, params: Json, id: Any, damaged: str = "") -> None:
        data = {"id": id, "method": method, "params": {"sessionId": "s", **params}}
        self.left(f"request:{method}", data, id=id, damaged=damaged)

    def begun(self, **hello: Any) -> Talk:
        """Introduced, with one session."""
        about = {"protocolVersion": 1, "clientInfo": {"name": "n", "version": "1"}}
        self.came("initialize", about, id=0, session=None)
        self.replied("initialize", HELLO | hello, id=0, session=None)
        self.came("session/new", {"cwd": "/a", "mcpServers": []}, id=100, session=None)
        self.replied("session/new", {"sessionId": "s"}, id=100)
        return self

    def prompt(self, id: int = 1) -> None:
        self.came("session/prompt", {"sessionId": "s", "prompt": []}, id=id)

    def cancel(self) -> None:
        self.came("session/cancel", {"sessionId": "s"}, id=NO_ID)

    def chose(self, option: str, id: int) -> None:
        self.answered(PERMISSION, id, {"result": {"outcome": {"outcome": "selected", "optionId": option}}})

    @property
    def broken(self) -> list[str]:
        self.audit.close()
        assert not self.audit.problems
        return [breach.rule for breach in self.audit.breaches]


def asking() -> Talk:
    """A turn that waits for a permission."""
    talk = Talk().begun()
    talk.prompt()
    talk.asked(PERMISSION, OPTIONS, 7)
    return talk


# --- cancelling


def test_an_answer_that_was_sent_before_the_cancel_may_be_any() -> None:
    talk = asking()
    talk.chose("yes", 7)
    talk.cancel()
    assert talk.broken == []


def test_a_cancel_that_crosses_the_end_of_the_turn_binds_nobody() -> None:
    talk = asking()
    talk.replied("session/prompt", {"stopReason": "end_turn"})
    talk.cancel()
    talk.chose("yes", 7)
    assert talk.broken == []


def test_the_error_for_a_cancelled_request_is_as_good_as_cancelled() -> None:
    talk = asking()
    talk.cancel()
    talk.answered(PERMISSION, 7, {"error": {"code": -32800, "message": "Cancelled"}})
    assert talk.broken == []


def test_who_leaves_right_behind_a_cancel_owes_no_answer() -> None:
    talk = asking()
    talk.cancel()
    talk.replied("session/prompt", {"stopReason": "cancelled"})
    assert talk.broken == []


def test_who_goes_on_behind_a_cancel_does() -> None:
    talk = asking()
    talk.cancel()
    talk.replied("session/prompt", {"stopReason": "cancelled"})
    talk.prompt(2)
    talk.replied("session/prompt", {"stopReason": "end_turn"}, id=2)
    assert talk.broken == ["ACP-CANCEL-01"]


def test_over_http_answers_and_cancels_may_overtake_each_other() -> None:
    talk = Talk("http").begun()
    talk.prompt()
    talk.asked(PERMISSION, OPTIONS, 7)
    talk.cancel()
    talk.chose("yes", 7)
    assert talk.broken == []


# --- sessions


def test_a_session_that_is_loaded_again_before_its_close_is_answered_stays_set_up() -> None:
    talk = Talk().begun(agentCapabilities={"loadSession": True, "sessionCapabilities": {"close": {}}})
    talk.came("session/close", {"sessionId": "s"}, id=2)
    talk.came("session/load", {"sessionId": "s", "cwd": "/a", "mcpServers": []}, id=3)
    talk.replied("session/load", {}, id=3)
    talk.replied("session/close", {}, id=2)
    talk.prompt(4)
    assert talk.broken == []


def test_over_http_a_prompt_may_arrive_behind_the_close_that_was_sent_after_it() -> None:
    talk = Talk("http").begun(agentCapabilities={"sessionCapabilities": {"close": {}}})
    talk.came("session/close", {"sessionId": "s"}, id=2)
    talk.replied("session/close", {}, id=2)
    talk.prompt(3)
    assert talk.broken == []


def test_a_prompt_before_the_set_up_is_answered_is_held_against_it() -> None:
    talk = Talk().begun(agentCapabilities={"loadSession": True})
    talk.came("session/load", {"sessionId": "t", "cwd": "/a", "mcpServers": []}, id=3, session="t")
    talk.came("session/prompt", {"sessionId": "t", "prompt": []}, id=4, session="t")
    assert talk.broken == ["ACP-SESSION-01"]


def test_a_null_result_of_load_sets_up_as_well() -> None:
    talk = Talk().begun(agentCapabilities={"loadSession": True})
    talk.came("session/load", {"sessionId": "t", "cwd": "/a", "mcpServers": []}, id=3, session="t")
    talk.replied("session/load", None, id=3, session="t")
    talk.came("session/prompt", {"sessionId": "t", "prompt": []}, id=4, session="t")
    assert talk.broken == []


# --- what was damaged


def test_nothing_is_gated_by_capabilities_that_left_damaged() -> None:
    talk = Talk()
    talk.came("initialize", {"protocolVersion": 1, "clientInfo": {"name": "n", "version": "1"}}, id=0, session=None)
    talk.replied("initialize", HELLO, id=0, session=None, damaged="edit")
    talk.came("session/list", {}, id=1, session=None)
    assert talk.broken == []


def test_a_cursor_that_left_in_a_damaged_page_was_given_out() -> None:
    talk = Talk().begun(agentCapabilities={"sessionCapabilities": {"list": {}}})
    talk.came("session/list", {"cwd": "/a"}, id=2, session=None)
    talk.replied("session/list", {"sessions": [], "nextCursor": "again"}, id=2, session=None, damaged="cursor")
    talk.came("session/list", {"cursor": "again"}, id=3, session=None)
    assert talk.broken == []


def test_a_request_that_left_twice_may_be_answered_twice() -> None:
    talk = asking()
    talk.asked(PERMISSION, OPTIONS, 7, damaged="copies")
    cancelled = {"result": {"outcome": {"outcome": "cancelled"}}}
    talk.answered(PERMISSION, 7, cancelled)
    talk.answered(PERMISSION, 7, cancelled)
    assert talk.broken == []


def test_a_request_that_left_under_another_id_is_answered_under_that() -> None:
    talk = Talk().begun()
    data = {"id": "x", "method": "_a", "params": {}}
    talk.left("request:_a", data, id=7, damaged="edit")
    talk.answered("_a", "x", {"error": {"code": -32601, "message": "?"}})
    assert talk.broken == []


def test_an_answer_to_what_the_scenario_has_made_up_is_none_to_nothing() -> None:
    talk = Talk().begun()
    talk.left("raw", {"jsonrpc": "2.0", "id": 50, "method": "_a"}, damaged="send")
    talk.answered("", 50, {"result": {}})
    talk.left("raw", '{"id": 51, "method": "_b"}', damaged="send")
    talk.answered("", 51, {"result": {}})
    assert talk.broken == []


def test_a_complaint_about_unreadable_input_is_no_answer() -> None:
    talk = Talk().begun()
    talk.answered("", None, {"error": {"code": -32700, "message": "Parse error"}})
    assert talk.broken == []


# --- settings, terminals, bytes


def test_an_option_that_was_just_taken_away_may_still_be_set() -> None:
    talk = Talk().begun()
    option = {"id": "m", "name": "M", "type": "select", "currentValue": "a", "options": [{"value": "a", "name": "A"}]}
    update = {"sessionUpdate": "config_option_update", "configOptions": [option]}
    talk.left("update:config_option_update", {"params": {"sessionId": "s", "update": update}})
    gone = {"sessionUpdate": "config_option_update", "configOptions": []}
    talk.left("update:config_option_update", {"params": {"sessionId": "s", "update": gone}})
    talk.came("session/set_config_option", {"sessionId": "s", "configId": "m", "value": "a"}, id=2)
    assert talk.broken == []


def test_a_load_that_leaves_modes_out_says_nothing_of_them() -> None:
    talk = Talk().begun(agentCapabilities={"loadSession": True})
    talk.came("session/load", {"sessionId": "t", "cwd": "/a", "mcpServers": []}, id=3, session="t")
    talk.replied("session/load", {}, id=3, session="t")
    talk.came("session/set_mode", {"sessionId": "t", "modeId": "code"}, id=4, session="t")
    assert talk.broken == []


def test_the_id_of_a_released_terminal_is_free_again() -> None:
    talk = Talk().begun()
    for id in (1, 3):
        talk.asked("terminal/create", {"command": "make"}, id)
        talk.answered("terminal/create", id, {"result": {"terminalId": "t"}})
        talk.asked("terminal/release", {"terminalId": "t"}, id + 1)
        talk.answered("terminal/release", id + 1, {"result": {}})
    assert talk.broken == []


def test_limits_of_the_mock_are_no_rules() -> None:
    talk = Talk().begun()
    for why in ("Invalid request: the line is too long", "Parse error: nested deeper than 200 levels",
                "Parse error: a number out of range", "Parse error: a lone surrogate in a string"):  # fmt: skip
        talk.audit.malformed(talk.peer, b"", why)
    assert talk.broken == []


SHAPES: list[Any] = [
    None, [], "x", 1, {"sessionId": {}}, {"prompt": [1, {"type": []}]}, {"mcpServers": [1, {"type": {}}]},
    {"cursor": {}, "cwd": {}}, {"configId": {}, "value": {}}, {"_meta": 1}, {"messages": [1, {"content": [2]}]},
    {"agent": 1, "tools": 2}, {"agent": {"name": [], "options": [], "tools": [1]}, "tools": [1, {"name": 2}]},
    {"messages": [{"role": [], "toolCallId": {}}, {"role": "user", "content": [{"type": {}}]}], "stream": {}},
]  # fmt: skip
"""Things that clients send where objects of a certain form belong."""

METHODS = (
    "initialize", "authenticate", "session/new", "session/load", "session/list", "session/prompt", "session/set_mode",
    "session/set_config_option", "session/close", "$/cancel_request",
)  # fmt: skip

RESULTS: list[Any] = [None, [], "x", {"outcome": 1}, {"outcome": {"outcome": []}}, {"content": {}}, {"action": {}}]


@pytest.mark.parametrize("params", SHAPES, ids=repr)
def test_params_of_any_shape_trip_no_rule_up(params: Any) -> None:
    talk = Talk().begun()
    for method in METHODS:
        data: Json = {"jsonrpc": "2.0", "id": 5, "method": method, "params": params}
        talk.audit.saw(Message(method, data, talk.peer, id=5, method=method), "in", Fate.INTACT)
    talk.audit.close()
    assert talk.audit.problems == []


@pytest.mark.parametrize("result", RESULTS, ids=repr)
def test_results_of_any_shape_trip_no_rule_up(result: Any) -> None:
    talk = Talk().begun()
    for method in (PERMISSION, "fs/read_text_file", "terminal/create", "terminal/output", "elicitation/create", ""):
        talk.asked(method, {"limit": 1, "terminalId": 1, "mode": "form", "requestedSchema": {"required": 1}}, 9)
        talk.answered(method, 9, {"result": result})
    talk.audit.close()
    assert talk.audit.problems == []


@pytest.mark.parametrize("body", SHAPES, ids=repr)
def test_bodies_of_any_shape_trip_no_rule_of_aap_up(body: Any) -> None:
    audit = Audit(AAP_RULES)
    peer = Peer("c1", "aap", "http")
    for kind, session in (("POST /sessions", None), ("POST /sessions/s/turns", "s"), ("GET /sessions", None)):
        for direction, name in (("in", kind), ("out", f"reply:{kind}"), ("out", "event:tool_call")):
            message = Message(name, body, peer, session=session, id=1, http=HttpHead(method="POST", path="/"))
            audit.saw(message, "in" if direction == "in" else "out", Fate.INTACT)
    audit.close()
    assert audit.problems == []
