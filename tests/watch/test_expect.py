"""Expectations: what meets each word, what misses it, and what is shown beside a miss."""

from __future__ import annotations

from typing import Any

import pytest

from mockagent.message import Burst, Fate, HttpHead, Message, Peer
from mockagent.scenario.model import Count, Expectation, Place
from mockagent.watch.expect import Expect
from mockagent.watch.watchers import Verdict

PEER = Peer("c1", "acp", "stdio")
WEB = Peer("c2", "aap", "http")
SECOND = 1_000_000


class Game:
    """One expectation, and a clock that the test moves."""

    def __init__(self, what: str, value: Any, **more: Any) -> None:
        self.now = 100.0
        self.expect = Expect([Expectation(what=what, value=value, **more)], clock=lambda: self.now)

    def came(self, kind: str, params: Any = None, *, neutral: str | None = None, id: Any = 1, **more: Any) -> Game:
        data = {"jsonrpc": "2.0", "id": id, "method": kind, "params": params} | more
        self.expect.saw(Message(kind, data, PEER, neutral=neutral, id=id), "in", Fate.INTACT)
        return self

    def left(self, kind: str, params: Any = None, *, id: Any = 1, fate: Fate = Fate.INTACT) -> Game:
        data = {"jsonrpc": "2.0", "id": id, "params": params}
        self.expect.saw(Message(kind, data, PEER, origin="turn"), "out", fate)
        return self

    def http(self, kind: str, data: Any = None, neutral: str | None = None, **head: Any) -> Game:
        message = Message(kind, data, WEB, neutral=neutral, http=HttpHead(**head))
        self.expect.saw(message, "in", Fate.INTACT)
        return self

    def note(self, event: str, **detail: Any) -> Game:
        self.expect.note(event, PEER, None, detail)
        return self

    def wait(self, seconds: float) -> Game:
        self.now += seconds
        return self

    @property
    def verdict(self) -> Verdict:
        [verdict] = self.expect.verdicts()
        assert self.expect.failed is not verdict.met
        return verdict

    @property
    def met(self) -> bool:
        return self.verdict.met


# --- request and never


def test_a_request_has_to_come_once_unless_a_count_says_otherwise() -> None:
    game = Game("request", "session/cancel")
    assert not game.met
    assert game.came("session/cancel").met
    assert game.came("session/cancel").met


@pytest.mark.parametrize(
    ("count", "right"),
    [
        (Count(numbers=frozenset({2})), {2}),
        (Count(numbers=frozenset({0, 2})), {0, 2}),
        (Count(low=2), {2, 3, 4}),
        (Count(low=1, high=2), {1, 2}),
        (Count(low=0, high=1), {0, 1}),
    ],
)
def test_a_count_is_met_by_its_numbers_only(count: Count, right: set[int]) -> None:
    game = Game("request", "m", count=count)
    found = set()
    for number in range(5):
        if game.met:
            found.add(number)
        game.came("m")
    assert found == right


def test_a_request_is_named_by_method_glob_neutral_kind_or_path() -> None:
    assert Game("request", "session/*").came("session/new").met
    assert Game("request", "list").came("session/list", neutral="list").met
    assert Game("request", "POST /sessions/*/turns").http("turn", method="POST", path="/sessions/a/turns").met
    assert not Game("request", "session/new").came("session/load").met


def test_params_are_compared_at_pointers_with_globs() -> None:
    params = {"/sessionId": "sess_*", "/deep/0/n": 1, "/gone": None}
    assert Game("request", "m", params=params).came("m", {"sessionId": "sess_1", "deep": [{"n": 1}]}).met
    assert not Game("request", "m", params=params).came("m", {"sessionId": "other", "deep": [{"n": 1}]}).met
    assert not Game("request", "m", params=params).came("m").met


def test_params_of_http_are_the_body_or_the_query() -> None:
    assert Game("request", "POST /sessions", params={"/a": 1}).http("POST /sessions", {"a": 1}).met
    assert Game("request", "GET /sessions", params={"/after": "c2"}).http("GET /sessions", query={"after": "c2"}).met


def test_the_closest_miss_is_shown_side_by_side() -> None:
    game = Game("request", "m", params={"/a": 1, "/b": "x*", "/c": True})
    game.came("m", {"a": 2, "b": "y"}).came("m", {"a": 1, "b": "xyz"}).came("other")
    verdict = game.verdict
    assert verdict.why == "seen never, expected once or more"
    closest = verdict.near[0]
    assert [(item.pointer, item.wanted, item.got) for item in closest.differences] == [("/c", "true", "(absent)")]
    assert (closest.message.line, closest.message.kind) == (2, "m")
    assert [(item.pointer, item.wanted, item.got) for item in verdict.near[1].differences] == [
        ("/a", "1", "2"),
        ("/b", '"x*"', '"y"'),
        ("/c", "true", "(absent)"),
    ]


def test_when_nothing_like_it_came_what_did_is_said() -> None:
    assert Game("request", "session/cancel").verdict.why.endswith("; the client sent nothing")
    assert (
        Game("request", "session/cancel")
        .came("session/cancle")
        .came("x")
        .verdict.why.endswith("; the client sent session/cancle")
    )
    assert Game("request", "session/cancel").came("a").came("b").verdict.why.endswith("; the client sent a, b")


def test_within_counts_from_the_first_sign_of_life() -> None:
    game = Game("request", "m", within=2 * SECOND).wait(50).note("connected").wait(1.5)
    assert game.came("m").met
    late = Game("request", "m", within=2 * SECOND).note("connected").wait(2.5).came("m")
    assert not late.met
    assert late.verdict.near[0].why == "it came 2.50 s after the client had come, 2 s were allowed"


def test_within_counts_from_what_after_names() -> None:
    for start in (
        lambda game: game.left("reply:session/new"),
        lambda game: game.note("reply:session/new"),
        lambda game: game.came("reply:session/new"),
    ):
        game = Game("request", "m", within=SECOND, after="reply:session/*").came("m").wait(9)
        assert not game.met
        assert game.verdict.near[0].why == "it came before reply:session/*"
        start(game)
        assert game.wait(0.5).came("m").met


def test_a_burst_and_its_neutral_kind_can_be_what_after_names() -> None:
    for after in ("update:agent_message_chunk", "say", "update:*"):
        game = Game("request", "m", after=after)
        game.expect.saw_burst(Burst("update:agent_message_chunk", "say", PEER, "s", "turn", [b"{}"] * 3))
        game.came("m")
        assert game.met
        assert game.verdict.shown == []


def test_what_never_left_starts_nothing() -> None:
    game = Game("request", "m", after="reply:x").left("reply:x", fate=Fate.UNSENT).came("m")
    assert not game.met
    assert Game("request", "m", after="reply:x").verdict.why.endswith(
        "; reply:x never happened; the client sent nothing"
    )


def test_the_message_that_opens_the_window_is_not_in_it() -> None:
    game = Game("request", "m", after="m").came("m")
    assert not game.met
    assert game.came("m").met


def test_never_is_met_until_it_comes_and_shows_it() -> None:
    game = Game("never", "session/prompt", params={"/sessionId": "a"})
    assert game.came("session/prompt", {"sessionId": "b"}).met
    assert not game.came("session/prompt", {"sessionId": "a"}).met
    assert [shown.line for shown in game.verdict.shown] == [2]
    assert game.verdict.why == "seen once"
    assert game.verdict.near == []


def test_what_is_kept_is_bounded() -> None:
    game = Game("never", "m")
    misses = Game("request", "m", params={"/a": 1})
    for number in range(100):
        game.came("m")
        misses.came("m", {"a": number + 2})
    assert len(game.verdict.shown) == 3
    assert len(misses.verdict.near) == 3


# --- permission


def answer(game: Game, option: str | None, id: Any = 1) -> Game:
    outcome = {"outcome": "cancelled"} if option is None else {"outcome": "selected", "optionId": option}
    return game.came("answer:session/request_permission", id=id, result={"outcome": outcome})


OPTIONS = {"options": [{"optionId": "yes", "kind": "allow_always"}, {"optionId": "no", "kind": "reject_once"}]}


@pytest.mark.parametrize(
    ("wanted", "option", "met"),
    [
        ("cancelled", None, True),
        ("cancelled", "yes", False),
        ("yes", "yes", True),
        ("no", "yes", False),
        ("granted", "yes", True),
        ("denied", "no", True),
        ("denied", "yes", False),
        ("denied", "unknown", False),
    ],
)
def test_permission_is_met_by_option_outcome_or_side(wanted: str, option: str | None, met: bool) -> None:
    game = Game("permission", wanted).left("request:session/request_permission", OPTIONS)
    assert answer(game, option).met is met


def test_another_answer_to_a_permission_is_shown_as_near() -> None:
    game = answer(Game("permission", "cancelled").left("request:session/request_permission", OPTIONS), "yes")
    [near] = game.verdict.near
    assert near.why == "the client answered yes"


def test_permission_counts_each_answer() -> None:
    game = Game("permission", "cancelled", count=Count(numbers=frozenset({3})))
    for id in range(3):
        assert not game.met
        answer(game, None, id)
    assert game.met


def test_an_error_is_no_answer_to_a_permission() -> None:
    game = Game("permission", "cancelled").came("answer:session/request_permission", error={"code": -1})
    assert game.verdict.near[0].why == "the client answered error"
    odd = Game("permission", "cancelled").came("answer:session/request_permission", result="odd")
    assert odd.verdict.near[0].why == "the client answered nothing"


def test_permissions_of_aap_are_granted_or_denied() -> None:
    for granted, name in ((True, "granted"), (False, "denied")):
        body = {"messages": [{"role": "tool_permission", "toolCallId": "t", "granted": granted}]}
        game = Game("permission", name).http("POST /sessions/a/turns", body, "turn", method="POST", path="/x")
        assert game.met


# --- reply_error


def test_reply_error_wants_the_code_and_the_method() -> None:
    error = {"code": -32601, "message": "no"}
    game = Game("reply_error", -32601, to="elicitation/*")
    assert not game.came("answer:fs/read_text_file", error=error).met
    assert not game.came("answer:elicitation/create", result={}).met
    assert game.verdict.near[0].why == "the client answered with a result"
    assert not game.came("answer:elicitation/create", error=error | {"code": -32603}).met
    assert game.came("answer:elicitation/create", error=error).met


def test_reply_error_takes_the_name_of_an_error_and_any_method() -> None:
    assert Game("reply_error", "method_not_found").came("answer:x", error={"code": -32601, "message": ""}).met


# --- disconnect


def test_disconnect_is_met_in_time() -> None:
    game = Game("disconnect", True, within=5 * SECOND).note("connected")
    assert not game.wait(4).met
    assert game.verdict.why == "the client was still connected 4.00 s after the client had come"
    assert game.note("eof").wait(100).note("closed").met
    late = Game("disconnect", True, within=5 * SECOND).note("connected").wait(6).note("closed")
    assert not late.met
    assert late.verdict.why == "the client disconnected 6.00 s after the client had come"


def test_a_connection_that_the_mock_ends_is_no_disconnect() -> None:
    assert not Game("disconnect", True).note("connected").note("closed", by="agent").met


def test_disconnect_after_something_does_not_count_before_it() -> None:
    game = Game("disconnect", True, after="reply:initialize").note("connected").note("eof")
    assert not game.met
    assert "disconnected before" in game.verdict.why
    assert game.left("reply:initialize").note("closed").met


# --- single_submit


def prompt(game: Game, text: str) -> Game:
    return game.came("session/prompt", {"sessionId": "s", "prompt": [{"text": text}]}, neutral="turn")


def test_a_prompt_sent_again_after_a_fault_is_a_double_submit() -> None:
    game = Game("single_submit", True)
    prompt(game, "a").note("fault", what="fired")
    assert game.met
    assert not prompt(game, "a").met
    assert [shown.line for shown in game.verdict.shown] == [1, 3]


def test_the_same_words_without_a_fault_between_are_the_users_own() -> None:
    game = Game("single_submit", True).note("fault", what="fired")
    prompt(game, "a").note("fault", what="skipped: unset")
    prompt(game, "a").note("fault", what="fired")
    assert prompt(game, "b").met


# --- words


def test_an_expectation_is_described_in_the_words_of_the_scenario() -> None:
    entry = Expectation(
        what="request",
        value="m",
        count=Count(numbers=frozenset({1})),
        within=1_500_000,
        params={"/a": 1},
        after="x",
        place=Place(file="a.yaml", line=3, column=5),
    )
    [verdict] = Expect([entry]).verdicts()
    assert verdict.expectation == 'request: m, count: once, within: 1.5s, params: {"/a":1}, after: x'
    assert verdict.place == "a.yaml:3:5"


def test_nothing_expected_is_met() -> None:
    expect = Expect([])
    expect.saw(Message("x", {}, PEER), "in", Fate.INTACT)
    assert not expect.failed
