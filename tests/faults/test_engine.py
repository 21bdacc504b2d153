from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockagent.faults.engine import Engine
from mockagent.faults.interface import Delay, Drop, Faults, Hold, Instead, Life, Pass, Play, Reply
from mockagent.message import NO_ID, Message
from mockagent.net.channel import Bytes, Cut
from mockagent.scenario.model import Count, Step, When

MakeFault = Callable[..., Any]
Passed = Callable[..., Message]

STEPS = (Step(verb="say", payload=("hi",)),)


def text_of(message: Message) -> str:
    text: str = message.data["params"]["update"]["content"]["text"]
    return text


# --- what is watched


def test_without_faults_nothing_is_watched_and_all_passes(host: Any) -> None:
    engine: Faults = host.engine()
    message = host.chunk("a")
    assert not engine.watches("update:agent_message_chunk", "say")
    assert engine.leaving(message) == (Pass(message),)
    assert engine.arriving(request := host.request("session/list")) == (Pass(request),)


@pytest.mark.parametrize(
    ("at", "effects", "watched"),
    [
        ("say", {"copies": 2}, {"update:agent_message_chunk"}),
        ("session/list", {"error": "busy"}, {"session/list", "reply:session/list", "reply:session/prompt"}),
        ("reply:session/list", {"drop": True}, {"reply:session/list"}),
        ("list", {"cursor": "null"}, {"session/list", "reply:session/list", "reply:session/prompt"}),
        ("eof", {"ignore": ("eof",)}, set()),
        (
            "session/prompt",
            {"split": {"parts": 2}},
            {
                "session/prompt",
                "reply:session/list",
                "reply:session/prompt",
                "update:agent_message_chunk",
                "update:plan",
            },
        ),
    ],
)
def test_a_fault_is_watched_where_it_could_act(
    host: Any, fault: MakeFault, at: str, effects: dict[str, Any], watched: set[str]
) -> None:
    engine = host.engine(fault(at, **effects))
    kinds = {
        "session/list": "list",
        "session/prompt": "turn",
        "reply:session/list": None,
        "reply:session/prompt": "stop",
        "update:agent_message_chunk": "say",
        "update:plan": None,
    }
    assert {kind for kind, neutral in kinds.items() if engine.watches(kind, neutral)} == watched


def test_what_is_watched_changes_with_what_is_armed(host: Any, fault: MakeFault) -> None:
    engine, rule = host.engine(), fault("say", drop=True)
    assert not engine.watches("update:agent_message_chunk", "say")
    engine.arm(rule)
    assert engine.watches("update:agent_message_chunk", "say")
    assert engine.armed == (rule,)
    assert engine.disarm(rule)
    assert not engine.disarm(rule)
    assert not engine.watches("update:agent_message_chunk", "say")


def test_the_memory_of_kinds_is_bounded(host: Any) -> None:
    engine = host.engine()
    for number in range(10_000):
        assert not engine.watches(f"_made/up/{number}", None)
    assert len(engine._watched) <= 4096


# --- in the handler's place


@pytest.mark.parametrize(
    ("effects", "reply"),
    [
        ({"error": "invalid_cursor"}, Reply(error="invalid_cursor")),
        ({"error": {"status": 503}}, Reply(error={"status": 503})),
        ({"result": None}, Reply(result=None)),
        ({"result": {"id": "${request.id}"}}, Reply(result={"id": 1})),
    ],
)
def test_an_answer_takes_the_handlers_place(host: Any, fault: MakeFault, effects: dict[str, Any], reply: Reply) -> None:
    assert host.engine(fault("session/list", **effects)).arriving(host.request("session/list")) == [reply]
    assert host.reports == [("session/list", tuple(effects), "fired")]


def test_a_dropped_request_reaches_nobody(host: Any, fault: MakeFault) -> None:
    engine = host.engine(fault("session/list", drop=True), fault("*", error="busy"))
    assert engine.arriving(host.request("session/list")) == [Drop()]
    assert len(host.reports) == 1


def test_an_error_may_answer_even_a_notification(host: Any, fault: MakeFault) -> None:
    engine = host.engine(fault("cancel", error="internal_error"))
    assert engine.arriving(host.request("session/cancel", NO_ID, neutral="cancel")) == [Reply(error="internal_error")]


def test_the_last_answer_counts(host: Any, fault: MakeFault) -> None:
    engine = host.engine(fault("session/list", error="busy"), fault("session/*", result=1))
    assert engine.arriving(host.request("session/list")) == [Reply(result=1)]


def test_an_unset_placeholder_skips_the_fault_and_the_conversation_goes_on(host: Any, fault: MakeFault) -> None:
    engine = host.engine(fault("session/list", error={"code": 1, "message": "${saved.nothing}"}, stderr="x"))
    request = host.request("session/list")
    assert engine.arriving(request) == [Pass(request)]
    [(kind, effects, what)] = host.reports
    assert (kind, effects) == ("session/list", ("error", "stderr"))
    assert what.startswith("skipped: ")
    assert "saved.nothing" in what


# --- on the reply


def test_other_effects_leave_the_handler_running_and_act_on_its_reply(
    host: Any, fault: MakeFault, passed: Passed
) -> None:
    engine = host.engine(fault("session/new", edit=({"set": "/result/sessionId", "to": "other"},), copies=2, delay=7))
    request = host.request("session/new", 5)
    assert engine.arriving(request) == [Pass(request)]
    acts = engine.leaving(host.reply("session/new", 5, result={"sessionId": "s1"}))
    assert [type(act) for act in acts] == [Delay, Pass, Pass]
    assert acts[1].message.data["result"] == {"sessionId": "other"}
    assert host.reports == [("session/new", ("edit", "delay", "copies"), "fired")]


def test_a_reply_is_found_by_its_id_and_changed_once(host: Any, fault: MakeFault) -> None:
    engine = host.engine(fault("session/new", When(nth=Count(numbers=frozenset({2}))), drop=False, copies=2))
    for id in (1, 2, "2", None):
        engine.arriving(host.request("session/new", id))
    counts = {id: len(engine.leaving(host.reply("session/new", id))) for id in (None, "2", 2, 1)}
    assert counts == {None: 1, "2": 1, 2: 2, 1: 1}
    assert len(engine.leaving(host.reply("session/new", 2))) == 1


def test_the_same_id_of_another_connection_is_another_request(host: Any, fault: MakeFault) -> None:
    engine = host.engine(fault("session/new", copies=2))
    engine.arriving(host.request("session/new", 1))
    other = host.reply("session/new", 1)
    other.peer = host.ws
    assert len(engine.leaving(other)) == 1
    assert len(engine.leaving(host.reply("session/new", 1))) == 2


def test_an_http_reply_is_found_without_an_id_too(host: Any, fault: MakeFault) -> None:
    engine = host.engine(fault("GET /sessions", copies=2))
    engine.arriving(host.http("GET /sessions", NO_ID))
    assert len(engine.leaving(host.http_reply("GET /sessions", NO_ID, body={}))) == 2


def test_what_a_fault_answered_is_seen_by_rules_at_the_reply(host: Any, fault: MakeFault, passed: Passed) -> None:
    engine = host.engine(
        fault("session/list", error="invalid_cursor"),
        fault("reply:session/list", When(result={"/error/code": -32602}), edit=({"set": "/error/code", "to": -1},)),
    )
    assert engine.arriving(host.request("session/list")) == [Reply(error="invalid_cursor")]
    reply = host.reply("session/list")
    reply.data = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "Invalid cursor"}}
    reply.origin = "fault"
    assert passed(engine.leaving(reply)).data["error"]["code"] == -1


def test_rules_fire_in_file_order_whether_written_at_the_request_or_the_reply(
    host: Any, fault: MakeFault, passed: Passed
) -> None:
    def put(at: str, number: int) -> Any:
        return fault(at, edit=({"set": "/result/order/-", "to": number},))

    engine = host.engine(put("reply:session/new", 1), put("session/new", 2), put("reply:*", 3), put("*", 4))
    engine.arriving(host.request("session/new"))
    assert passed(engine.leaving(host.reply("session/new"))).data["result"]["order"] == [1, 2, 3, 4]


def test_a_rule_at_the_reply_is_held_against_the_params_of_the_request(host: Any, fault: MakeFault) -> None:
    engine = host.engine(fault("reply:session/list", When(params={"/cwd": "/a*"}), drop=True))
    for id, cwd in ((1, "/b"), (2, "/a/b")):
        engine.arriving(host.request("session/list", id, cwd=cwd))
    assert [type(engine.leaving(host.reply("session/list", id))[0]) for id in (2, 1)] == [Drop, Pass]


def test_the_end_waits_for_the_reply_only_if_something_happens_to_it(host: Any, fault: MakeFault) -> None:
    request, reply = host.request("session/load"), host.reply("session/load")
    assert host.engine(fault("session/load", exit={"code": 1})).arriving(request) == [Life(exit=1), Pass(request)]
    engine = host.engine(fault("session/load", error="busy", exit={"code": 1}))
    assert engine.arriving(request) == [Reply(error="busy")]
    assert engine.leaving(reply) == [Pass(reply), Life(exit=1)]
    engine = host.engine(fault("session/load", truncate=5, disconnect="reset"))
    assert engine.arriving(request) == [Pass(request)]
    [sent, end] = engine.leaving(reply)
    assert end == Life(cut=Cut("reset"))
    assert len(engine.framing(sent.message, b"0123456789")[0].data) == 5


def test_steps_in_place_of_a_dropped_request_play_at_once(host: Any, fault: MakeFault) -> None:
    engine = host.engine(fault("turn", drop=True, play_after=STEPS))
    assert engine.arriving(host.request("session/prompt", neutral="turn")) == [Drop(), Play(STEPS)]


def test_words_on_stderr_do_not_wait_for_the_reply(host: Any, fault: MakeFault) -> None:
    engine = host.engine(fault("initialize", delay=20, stderr="slow"))
    request, reply = host.request("initialize"), host.reply("initialize")
    assert engine.arriving(request) == [Life(stderr="slow"), Pass(request)]
    assert engine.leaving(reply) == [Delay(20), Pass(reply)]


def test_a_skip_at_the_reply_leaves_it_as_it_was(host: Any, fault: MakeFault) -> None:
    engine = host.engine(fault("session/new", edit=({"set": "/result/a/b", "to": 1},)))
    engine.arriving(host.request("session/new"))
    reply = host.reply("session/new", result={"a": "text"})
    assert engine.leaving(reply) == [Pass(reply)]
    assert host.reports[-1][0] == "reply:session/new"
    assert host.reports[-1][2].startswith("skipped: ")


def test_a_disarmed_fault_does_nothing_any_more(host: Any, fault: MakeFault) -> None:
    rule = fault("session/new", copies=2)
    engine = host.engine(rule)
    engine.arriving(host.request("session/new"))
    engine.clear()
    reply = host.reply("session/new")
    assert list(engine.leaving(reply)) == [Pass(reply)]


def test_a_closed_connection_and_an_aborted_reply_are_forgotten(host: Any, fault: MakeFault) -> None:
    engine = host.engine(fault("session/new", copies=2))
    engine.arriving(host.request("session/new", 1))
    engine.arriving(second := host.request("session/new", 2))
    engine.forget(second)
    assert len(engine.leaving(host.reply("session/new", 2))) == 1
    engine.lifecycle("closed", host.peer)
    assert len(engine.leaving(host.reply("session/new", 1))) == 1


# --- from arrival until the reply has left


def test_wire_effects_at_a_prompt_hold_for_its_session_until_the_reply(host: Any, fault: MakeFault) -> None:
    engine = host.engine(fault("turn", newline="crlf", copies=2))

    def newline(message: Message) -> bytes | None:
        acts = [act for act in engine.leaving(message) if isinstance(act, Pass)]
        return acts[0].message.shape.newline if acts[0].message.shape else None

    assert newline(host.chunk("before")) is None
    engine.arriving(host.request("session/prompt", 3, session="s1", neutral="turn"))
    assert newline(host.chunk("during")) == b"\r\n"
    assert len(engine.leaving(host.chunk("only wire effects do"))) == 1
    assert newline(host.chunk("elsewhere", "s2")) is None
    reply = host.reply("session/prompt", 3, session="s1")
    acts = engine.leaving(reply)
    assert [act.message.shape and act.message.shape.newline for act in acts if isinstance(act, Pass)] == [b"\r\n"] * 2
    assert newline(host.chunk("after")) is None


def test_a_streamed_turn_ends_with_its_last_event(host: Any, fault: MakeFault) -> None:
    edit = ({"set": "/stopReason", "to": "refusal"}, {"set": "/http/headers/X-A", "to": "b"})
    engine = host.engine(fault("turn", edit=edit, newline="cr", hold={"until": 5}))
    kind = "POST /sessions/s1/turns"
    engine.arriving(host.http(kind, 8, session="s1", neutral="turn", body={"stream": "delta"}))
    [head] = engine.leaving(host.http_reply(kind, 8, type="text/event-stream", session="s1"))
    assert head.message.http.headers["X-A"] == "b"
    [delta] = engine.leaving(host.event("text_delta", {"delta": "x"}, neutral="say"))
    assert isinstance(delta, Pass)
    assert delta.message.shape is not None
    assert delta.message.shape.newline == b"\r"
    [end] = engine.leaving(host.event("turn_stop", {"stopReason": "end_turn"}, neutral="stop"))
    assert isinstance(end, Hold)
    assert end.message.data == {"stopReason": "refusal"}
    assert end.message.shape is not None
    assert end.message.shape.newline == b"\r"
    late = host.event("text_delta", {"delta": "late"}, neutral="say")
    assert list(engine.leaving(late)) == [Pass(late)]


def test_a_turn_answered_in_one_piece_is_an_ordinary_reply(host: Any, fault: MakeFault, passed: Passed) -> None:
    engine = host.engine(fault("turn", edit=({"set": "/stopReason", "to": "refusal"},)))
    engine.arriving(host.http("POST /sessions/s1/turns", 8, session="s1", neutral="turn", body={}))
    reply = host.http_reply("POST /sessions/s1/turns", 8, session="s1", body={"stopReason": "end_turn"})
    assert passed(engine.leaving(reply)).data == {"stopReason": "refusal"}


# --- what comes in and is not answered


def test_a_notification_is_itself_held_edited_or_doubled(host: Any, fault: MakeFault) -> None:
    cancel = host.request("session/cancel", NO_ID, neutral="cancel", sessionId="s1")
    [act] = host.engine(fault("cancel", hold={"until": 5})).arriving(cancel)
    assert act == Hold(cancel, 5)
    acts = host.engine(fault("cancel", copies=2, edit=({"set": "/params/sessionId", "to": "x"},))).arriving(cancel)
    assert [act.message.data["params"]["sessionId"] for act in acts] == ["x", "x"]
    assert cancel.data["params"]["sessionId"] == "s1"


def test_an_answer_of_the_client_can_be_dropped_but_not_answered(host: Any, fault: MakeFault) -> None:
    answer = Message("answer:fs/read_text_file", {"id": 1, "result": {}}, host.peer, id=1, method="fs/read_text_file")
    assert host.engine(fault("answer:*", drop=True)).arriving(answer) == [Drop()]
    assert host.engine(fault("answer:*", error="busy")).arriving(answer) == [Pass(answer)]


# --- several rules at one message


def test_a_later_rule_sees_what_earlier_ones_made(host: Any, fault: MakeFault, passed: Passed) -> None:
    engine = host.engine(
        fault("say", edit=({"set": "/params/update/content/text", "to": "b"},)),
        fault("say", When(params={"/update/content/text": "b"}), edit=({"set": "/params/x", "to": "seen"},)),
        fault("say", When(params={"/update/content/text": "a"}), drop=True),
    )
    message = passed(engine.leaving(host.chunk("a")))
    assert (text_of(message), message.data["params"]["x"]) == ("b", "seen")


@given(st.lists(st.sampled_from("abc"), max_size=8))
def test_edits_compose_in_file_order(letters: list[str]) -> None:
    from mockagent.message import Peer
    from mockagent.scenario.model import Fault

    faults = [Fault(at="event:x", effects={"edit": ({"set": "/seen/-", "to": letter},)}) for letter in letters]
    engine = Engine(
        faults,
        facts=lambda session, message: {},
        rng=lambda purpose, session: pytest.fail("no chance is needed"),
        fill=lambda value, spot: value,
        report=lambda *_: None,
        save=lambda *_: None,
    )
    [act] = engine.leaving(Message("event:x", {"seen": []}, Peer("c1", "aap", "http")))
    assert isinstance(act, Pass)
    assert act.message.data == {"seen": letters}


def test_what_a_fault_plays_is_not_faulted(host: Any, fault: MakeFault) -> None:
    engine = host.engine(fault("say", copies=2))
    message = host.chunk("a", origin="fault")
    assert engine.leaving(message) == (Pass(message),)


def test_nothing_behind_a_drop_fires(host: Any, fault: MakeFault) -> None:
    engine = host.engine(fault("say", drop=True), fault("say", copies=2))
    assert engine.leaving(host.chunk("a")) == [Drop()]
    assert len(host.reports) == 1


def test_the_bytes_of_two_rules_are_changed_in_file_order(host: Any, fault: MakeFault, passed: Passed) -> None:
    engine = host.engine(fault("say", bytes={"before": "ab"}), fault("say", truncate=3))
    assert list(engine.framing(passed(engine.leaving(host.chunk("a"))), b"cdef")) == [Bytes(b"abc")]


# --- conditions, counters, saving


def test_the_nth_message_of_each_session_is_counted_apart(host: Any, fault: MakeFault) -> None:
    engine = host.engine(fault("say", When(nth=Count(numbers=frozenset({2}))), drop=True))
    fates = [
        isinstance(engine.leaving(host.chunk("x", session))[0], Drop) for session in ("s1", "s2", "s1", "s1", "s2")
    ]
    assert fates == [False, False, True, False, True]


def test_requests_outside_sessions_are_counted_over_the_process(host: Any, fault: MakeFault) -> None:
    engine = host.engine(fault("session/list", When(times=1), error="busy"))
    first, second = host.request("session/list", 1), host.request("session/list", 2)
    second.peer = host.ws
    assert isinstance(engine.arriving(first)[0], Reply)
    assert engine.arriving(second) == [Pass(second)]


def test_facts_of_the_session_come_from_the_host(host: Any, fault: MakeFault) -> None:
    host.sessions["s1"] = {"mode": "code", "turn": 2, "prompt": "What is 6 * 7?"}
    when = When(
        mode="code", turn=Count(low=2), prompt="/is (.*)\\?/", protocol="acp", transport="stdio", origin=("turn",)
    )
    engine = host.engine(fault("say", when, edit=({"set": "/params/sum", "to": "${match.1}"},)))
    [act] = engine.leaving(host.chunk("42"))
    assert act.message.data["params"]["sum"] == "6 * 7"
    other = host.chunk("42", "s2")
    assert engine.leaving(other) == [Pass(other)]


def test_an_unset_placeholder_in_a_condition_is_reported(host: Any, fault: MakeFault) -> None:
    engine = host.engine(fault("say", When(params={"/sessionId": "${saved.id}"}), drop=True))
    message = host.chunk("a")
    assert engine.leaving(message) == [Pass(message)]
    [(kind, effects, what)] = host.reports
    assert (kind, effects) == ("update:agent_message_chunk", ("drop",))
    assert what.startswith("skipped: ")
    assert "saved.id" in what
    host.saved["id"] = "s1"
    assert engine.leaving(message) == [Drop()]


def test_a_value_is_saved_as_it_leaves_the_rule(host: Any, fault: MakeFault) -> None:
    rule = fault(
        "say", None, {"text": "/params/update/content/text"}, edit=({"set": "/params/update/content/text", "to": "b"},)
    )
    host.engine(rule).leaving(host.chunk("a"))
    assert host.saved == {"text": "b"}


def test_a_fault_at_a_request_saves_from_the_request(host: Any, fault: MakeFault) -> None:
    engine = host.engine(fault("session/new", None, {"cwd": "/params/cwd"}, copies=2))
    engine.arriving(host.request("session/new", cwd="/a"))
    assert host.saved == {"cwd": "/a"}
    engine.leaving(host.reply("session/new"))
    assert len(host.reports) == 1


def test_a_fault_that_cannot_save_is_skipped(host: Any, fault: MakeFault) -> None:
    engine = host.engine(fault("say", None, {"x": "/nowhere"}, drop=True))
    message = host.chunk("a")
    assert engine.leaving(message) == [Pass(message)]
    assert host.saved == {}


def test_a_fault_may_do_nothing_but_save(host: Any, fault: MakeFault) -> None:
    message = host.chunk("a")
    assert host.engine(fault("say", None, {"x": "/params/sessionId"})).leaving(message) == [Pass(message)]
    assert host.saved == {"x": "s1"}


# --- in place of a refusal; several scenarios


def test_a_refusal_is_replaced_by_another_error_or_by_something_else(host: Any, fault: MakeFault) -> None:
    engine = host.engine(
        fault("refusal:session_not_found", error={"code": "internal_error", "message": "for ${request.id}"}),
        fault("refusal:invalid_cursor", instead="first_page"),
    )
    request = host.request("session/load")
    assert engine.refusing(request, "session_inactive") is None
    assert engine.refusing(request, "invalid_cursor") == Instead(do="first_page")
    assert not engine.watches("session/load", "load")
    assert not engine.watches("reply:session/load", None)
    assert [report[1:] for report in host.reports] == [(("instead",), "fired")]


def test_faults_keep_to_what_belongs_to_them(host: Any, fault: MakeFault) -> None:
    rule = fault("say", copies=2)
    engine = Engine(
        [rule],
        facts=host.facts,
        rng=host.rng,
        fill=host.fill,
        report=host.report,
        save=host.save,
        belongs=lambda fault, spot: fault is rule and spot.session == "s1" and spot.message is not None,
    )
    assert [len(engine.leaving(host.chunk("a", session))) for session in ("s1", "s2")] == [2, 1]


def test_what_may_be_ignored_or_asked_for_at_the_reply_is_watched_on_the_way_in(host: Any, fault: MakeFault) -> None:
    engine = host.engine(
        fault("turn", ignore=("cancel",)), fault("reply:session/list", When(params={"/a": 1}), drop=True)
    )
    assert engine.watches("session/cancel", "cancel")
    assert engine.watches("session/list", "list")
    assert not engine.watches("session/new", "create")
