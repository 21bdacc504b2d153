from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockagent.faults.effects import EFFECTS
from mockagent.faults.interface import Delay, Drop, Hold, Life, Pass, Play, Resend
from mockagent.faults.life import life_of_step
from mockagent.message import HttpHead, Message, Peer
from mockagent.net.channel import Bytes, Cut, Pause, Rate
from mockagent.scenario.model import Step, Uniform
from mockagent.script import pointer

MakeFault = Callable[..., Any]
Passed = Callable[..., Message]

STEPS = (Step(verb="say", payload=("hi",)),)


@pytest.fixture
def leave(host: Any, fault: MakeFault) -> Callable[..., list[Any]]:
    """What becomes of a message under one fault with these effects, which is written at the message itself."""

    def leave(message: Message, **effects: Any) -> list[Any]:
        return list(host.engine(fault(message.kind, **effects)).leaving(message))

    return leave


# --- answer


def test_a_named_error_takes_the_place_of_a_result(host: Any, leave: Any, passed: Passed) -> None:
    message = passed(leave(host.reply("session/load", "x"), error="session_not_found"))
    assert message.data == {
        "jsonrpc": "2.0",
        "id": "x",
        "error": {"code": -32002, "message": "Session not found", "data": {"reason": "session_not_found"}},
    }
    assert message.damaged == ()


def test_an_error_may_be_written_out(host: Any, leave: Any, passed: Passed) -> None:
    message = passed(leave(host.reply("session/load"), error={"code": -1, "message": "no", "data": "why"}))
    assert message.data["error"] == {"code": -1, "message": "no", "data": "why"}
    message = passed(leave(host.reply("session/load"), error={"code": "busy", "message": "Later"}))
    assert message.data["error"] == {"code": -32600, "message": "Later", "data": {"reason": "busy"}}


def test_what_is_added_to_one_error_reply_is_not_in_the_next(host: Any, leave: Any, passed: Passed) -> None:
    first = passed(leave(host.http_reply("GET /sessions"), error="rate_limited"))
    assert first.http is not None
    first.http.headers["X-More"] = "1"
    second = passed(leave(host.http_reply("GET /sessions"), error="rate_limited"))
    assert second.http == HttpHead(status=429, headers={"Retry-After": "1"})


def test_a_named_error_over_http_has_status_headers_and_body(host: Any, leave: Any, passed: Passed) -> None:
    message = passed(leave(host.http_reply("GET /sessions", body={"sessions": []}), error="rate_limited"))
    assert message.http == HttpHead(status=429, headers={"Retry-After": "1"})
    assert message.data == {"error": {"code": "rate_limited", "message": "Rate limited"}}


def test_an_http_error_may_be_written_out_with_any_status(host: Any, leave: Any, passed: Passed) -> None:
    error = {"status": 200, "headers": {"X-A": 1}, "body": "oops"}
    message = passed(leave(host.http_reply("GET /sessions"), error=error))
    assert (message.http, message.data) == (HttpHead(status=200, headers={"X-A": "1"}), "oops")
    message = passed(leave(host.http_reply("GET /sessions"), error={"code": -32002, "message": "gone"}))
    assert message.http == HttpHead(status=404)
    assert message.data == {"error": {"code": "session_not_found", "message": "gone"}}


def test_an_http_error_cannot_be_said_in_json_rpc(host: Any, leave: Any) -> None:
    original = host.reply("session/load")
    assert leave(original, error={"status": 500}) == [Pass(original)]
    assert host.reports[-1][2].startswith("skipped: an error with an HTTP status")


def test_a_result_takes_the_place_of_what_was_answered(host: Any, leave: Any, passed: Passed) -> None:
    assert passed(leave(host.reply("session/load"), result=None)).data == {"jsonrpc": "2.0", "id": 1, "result": None}
    assert passed(leave(host.http_reply("GET /sessions", body={}), result=[1])).data == [1]


def test_an_update_cannot_be_an_error(host: Any, leave: Any) -> None:
    original = host.chunk("a")
    assert leave(original, error="busy", copies=2) == [Pass(original)]


def test_an_edit_changes_a_copy_and_drops_the_encoded_text(host: Any, leave: Any, passed: Passed) -> None:
    original = host.chunk("a")
    original.raw = original.text
    edit = ({"set": "/params/update/content/text", "to": 7}, {"remove": "/jsonrpc"}, {"remove": "/nothing"})
    changed = passed(leave(original, edit=edit))
    assert pointer.get(changed.data, "/params/update/content/text") == 7
    assert "jsonrpc" not in changed.data
    assert msgspec.json.decode(changed.text) == changed.data
    assert changed.damaged == ("edit",)
    assert pointer.get(original.data, "/params/update/content/text") == "a"


def test_an_edit_sees_the_old_value(host: Any, leave: Any, passed: Passed) -> None:
    edit = (
        {"set": "/input", "to": "${value}", "as": "string"},
        {"set": "/n", "as": "number", "to": "${value}"},
        {"set": "/name", "as": "string", "to": "${value}"},
    )
    event = host.event("tool_call", {"input": {"q": 1}, "n": "12", "name": "x"})
    assert passed(leave(event, edit=edit)).data == {"input": '{"q":1}', "n": 12, "name": "x"}


@pytest.mark.parametrize(
    "edit",
    [
        {"set": "/a/b", "to": 1},
        {"set": "/new", "to": "${value}"},
        {"set": "/a", "to": "${value}", "as": "number"},
        {"set": "/a", "to": "${saved.unknown}"},
    ],
)
def test_an_impossible_edit_skips_the_whole_fault(host: Any, leave: Any, edit: dict[str, Any]) -> None:
    original = host.event("text_delta", {"a": "text"})
    assert leave(original, edit=({"set": "/first", "to": 1}, edit), copies=3) == [Pass(original)]
    assert original.data == {"a": "text"}
    [(kind, effects, what)] = host.reports
    assert (kind, effects) == ("event:text_delta", ("edit", "copies"))
    assert what.startswith("skipped: ")


def test_an_event_gets_another_name(host: Any, leave: Any, passed: Passed) -> None:
    event = host.event("text_delta", {"delta": "x"})
    for effects in ({"edit": ({"event_name": "future"},)}, {"event_name": "future"}):
        shape = passed(leave(event, **effects)).shape
        assert shape is not None
        assert shape.event_name == "future"
    assert event.shape is None


def test_an_edit_reaches_the_head_of_an_http_reply(host: Any, leave: Any, passed: Passed) -> None:
    original = host.http_reply("POST /sessions/*/turns", type="text/event-stream; charset=utf-8")
    edit = ({"set": "/http/headers/Content-Type", "to": "text/event-stream"}, {"set": "/http/status", "to": 201})
    changed = passed(leave(original, edit=edit))
    assert changed.http == HttpHead(status=201, headers={"Content-Type": "text/event-stream"})
    assert original.http.status == 200


def test_a_request_of_ours_goes_by_the_id_that_is_really_sent(host: Any, leave: Any, passed: Passed) -> None:
    data = {"jsonrpc": "2.0", "id": 4, "method": "fs/read_text_file"}
    request = Message("request:fs/read_text_file", data, host.peer, id=4, origin="turn")
    assert passed(leave(request, edit=({"set": "/id", "to": "four"},))).id == "four"
    assert request.id == 4


# --- order


def test_a_dropped_message_does_not_leave(host: Any, leave: Any) -> None:
    assert leave(host.chunk("a"), drop=True) == [Drop()]
    assert leave(host.chunk("a"), drop=True, play_after=STEPS) == [Drop(), Play(STEPS)]


@given(st.integers(1, 20))
def test_copies_leave_in_all(copies: int) -> None:
    from mockagent.faults.effects import Context, Work

    work = Work(Message("update:plan", {}, Peer("c1", "acp", "stdio")))
    EFFECTS["copies"].apply(work, copies, Context(lambda value, old: value, float))
    acts = work.acts()
    assert len(acts) == copies
    assert all(isinstance(act, Pass) for act in acts)
    assert len({id(act.message) for act in acts if isinstance(act, Pass)}) == copies


def test_the_first_of_several_copies_is_intact(host: Any, leave: Any) -> None:
    assert [act.message.damaged for act in leave(host.chunk("a"), copies=3)] == [(), ("copies",), ("copies",)]


def test_what_is_played_stands_around_all_copies(host: Any, leave: Any) -> None:
    acts = leave(host.chunk("a"), copies=2, play_before=STEPS, play_after=STEPS, delay=5)
    assert [type(act) for act in acts] == [Delay, Play, Pass, Pass, Play]
    assert acts[0] == Delay(5)


@pytest.mark.parametrize("until", ["reply", "turn_ended", "next_prompt", "never", 2_000_000])
def test_a_held_message_is_held_until_an_event_or_for_a_while(host: Any, leave: Any, until: Any) -> None:
    message = host.reply("session/new")
    [act] = leave(message, hold={"until": until})
    assert isinstance(act, Hold)
    assert (act.until, act.message.data) == (until, message.data)


def test_only_a_stream_can_be_told_what_to_send_again(host: Any, fault: MakeFault, leave: Any) -> None:
    request = host.http("GET /acp")
    assert host.engine(fault("GET /acp", resend="all")).arriving(request) == [Resend("all"), Pass(request)]
    original = host.chunk("a")
    assert leave(original, resend="all") == [Pass(original)]


# --- wire


@pytest.mark.parametrize(
    ("effects", "field", "value", "damaged"),
    [
        ({"escape": "ascii"}, "escape_ascii", True, ()),
        ({"newline": "crlf"}, "newline", b"\r\n", ("newline",)),
        ({"newline": "cr"}, "newline", b"\r", ("newline",)),
        ({"newline": "none"}, "newline", b"", ("newline",)),
        ({"newline": "double"}, "newline", b"\n\n", ("newline",)),
        ({"binary": True}, "binary", True, ("binary",)),
        ({"comment": "still here"}, "comment", "still here", ()),
        ({"no_blank": True}, "no_blank", True, ("no_blank",)),
    ],
)
def test_the_encoder_is_told_what_it_has_to_know(
    host: Any, leave: Any, passed: Passed, effects: dict[str, Any], field: str, value: Any, damaged: tuple[str, ...]
) -> None:
    original = host.chunk("a")
    message = passed(leave(original, **effects))
    assert getattr(message.shape, field) == value
    assert message.damaged == damaged
    assert original.shape is None


def ops(host: Any, fault: MakeFault, message: Message, **effects: Any) -> list[Any]:
    engine = host.engine(fault(message.kind, **effects))
    return [op for act in engine.leaving(message) for op in engine.framing(act.message, act.message.text + b"\n")]


def test_bytes_are_changed_from_meaning_to_bytes(host: Any, fault: MakeFault) -> None:
    found = ops(
        host,
        fault,
        host.reply("session/new"),
        rate=100.0,
        split={"parts": 2, "into": "writes", "pause": 1_500_000},
        bytes={"before": "##"},
        truncate=6,
        result={},
    )
    assert found == [Rate(b'##{"', 100.0), Pause(1.5), Rate(b"json", 100.0)]


def test_each_copy_is_damaged_alike(host: Any, fault: MakeFault) -> None:
    assert ops(host, fault, host.chunk("a"), copies=2, truncate=2) == [Bytes(b'{"'), Bytes(b'{"')]


def test_a_pause_is_drawn_once_a_message(host: Any, fault: MakeFault) -> None:
    found = ops(host, fault, host.chunk("a"), split={"parts": 3, "pause": Uniform(0, 1_000_000)})
    pauses = {op.seconds for op in found if isinstance(op, Pause)}
    assert len(pauses) == 1
    assert 0 <= pauses.pop() <= 1


def test_a_message_without_faults_is_written_as_it_is(host: Any) -> None:
    assert list(host.engine().framing(host.chunk("a"), b"x\n")) == [Bytes(b"x\n")]


def web_socket_chunk(host: Any, text: str) -> Message:
    message: Message = host.chunk(text)
    message.peer = host.ws
    return message


def test_frames_are_cut_in_the_final_text_and_only_on_a_websocket(host: Any, fault: MakeFault, passed: Passed) -> None:
    edit = fault("say", edit=({"set": "/params/update/content/text", "to": "東東"},))
    cut = fault("say", split={"at": "utf8", "into": "frames", "pause": 1000})
    engine = host.engine(cut, edit)
    message = passed(engine.leaving(web_socket_chunk(host, "plain")))
    [offset] = message.shape.fragments if message.shape and message.shape.fragments else []
    assert message.text[offset - 1 :].startswith("東".encode())
    assert list(engine.framing(message, [b"one", b"two"])) == [
        Bytes(b"one", alone=True), Pause(0.001), Bytes(b"two", alone=True),
    ]  # fmt: skip
    message = passed(host.engine(cut).leaving(host.chunk("東")))
    assert message.shape is None
    assert message.plan[0][1]["into"] == "writes"


def test_pieces_are_counted_in_the_escaped_text(host: Any, leave: Any, passed: Passed) -> None:
    message = passed(leave(host.event("text", "é𝄞"), escape="ascii", split={"at": (7, 13), "into": "messages"}))
    assert message.shape is not None
    assert message.shape.pieces == [7, 13]  # of "\u00e9\ud834\udd1e", quotes included: 20 bytes
    assert message.damaged == ("split",)


def test_on_a_websocket_foreign_and_missing_bytes_are_inside_the_frame(
    host: Any, fault: MakeFault, passed: Passed
) -> None:
    message = web_socket_chunk(host, "a")
    text = message.text
    engine = host.engine(fault("say", truncate=10, bytes={"before": "<", "after": ">"}))
    changed = passed(engine.leaving(message))
    assert changed.text == b"<" + text[:10] + b">"
    assert list(engine.framing(changed, b"frame")) == [Bytes(b"frame")]


# --- life


@pytest.mark.parametrize(
    ("effects", "life"),
    [
        ({"disconnect": "close"}, Life(cut=Cut("close"))),
        ({"disconnect": "reset"}, Life(cut=Cut("reset"))),
        ({"disconnect": "half"}, Life(cut=Cut("half"))),
        ({"disconnect": {"code": 1011, "reason": "oops"}}, Life(cut=Cut("close", 1011, "oops"))),
        ({"exit": {"code": 0}}, Life(exit=0)),
        ({"exit": {"code": 3}}, Life(exit=3)),
        ({"exit": {"signal": 9}}, Life(exit=-9)),
        ({"exit": {"signal": "KILL"}}, Life(exit=-9)),
        ({"exit": {"signal": "SIGTERM"}}, Life(exit=-15)),
        ({"stall": {"write": "forever"}}, Life(stall_write=math.inf)),
        ({"stall": {"read": 2_500_000}}, Life(stall_read=2.5)),
    ],
)
def test_the_end_comes_behind_the_message(host: Any, leave: Any, effects: dict[str, Any], life: Life) -> None:
    message = host.chunk("a")
    assert leave(message, **effects) == [Pass(message), life]


def test_words_on_stderr_come_first_and_fill_so_many_bytes(host: Any, leave: Any) -> None:
    message = host.chunk("a")
    assert leave(message, stderr={"text": "hm"}) == [Life(stderr="hm"), Pass(message)]
    [life, _] = leave(message, stderr={"text": "né", "bytes": 8, "every": 5})
    assert (life.stderr, life.stderr_every) == ("nénén", 5)  # the next character would be cut in two
    [life, _] = leave(message, stderr={"bytes": 1000})
    assert len(life.stderr) == 1000


def test_a_child_process_is_there_before_the_message(host: Any, leave: Any) -> None:
    message = host.chunk("a")
    assert leave(message, child=1_500_000) == [Life(child=1.5), Pass(message)]


def test_a_step_of_the_same_name_does_the_same() -> None:
    assert life_of_step("disconnect", {"code": 1001, "reason": ""}) == Life(cut=Cut("close", 1001))
    assert life_of_step("exit", {"signal": 9}) == Life(exit=-9)
    assert life_of_step("stall", {"write": 1_000_000}) == Life(stall_write=1.0)
    assert life_of_step("stderr", {"text": "x", "every": 7}) == Life(stderr="x", stderr_every=7)


def test_every_effect_of_the_table_is_one_that_the_loader_knows() -> None:
    effects = pytest.importorskip("mockagent.scenario.effects")
    assert set(effects.EFFECTS) == set(EFFECTS)
    assert {name: row.layer for name, row in effects.EFFECTS.items()} == {
        name: row.layer for name, row in EFFECTS.items()
    }
