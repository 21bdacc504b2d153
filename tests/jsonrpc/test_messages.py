"""Messages: what is read as what, and which faults of form get which answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockagent.jsonrpc.messages import (
    INVALID_REQUEST,
    MAX_BATCH,
    MAX_DEPTH,
    PARSE_ERROR,
    Batch,
    Malformed,
    Notification,
    Request,
    Response,
    encode_error,
    encode_notification,
    encode_request,
    encode_result,
    parse,
)

IDS: list[Any] = [0, 1, -7, 2**63, 10**30, -(10**30), "", "a", "1", None, 1.0]


def text(value: Any) -> bytes:
    return json.dumps(value).encode()


def bad(raw: bytes) -> Malformed:
    message = parse(raw)
    assert isinstance(message, Malformed), message
    return message


@pytest.mark.parametrize("id", IDS, ids=repr)
def test_every_kind_of_id_comes_back_in_the_answer(id: Any) -> None:
    request = parse(text({"jsonrpc": "2.0", "id": id, "method": "m", "params": {"a": 1}}))
    assert isinstance(request, Request)
    assert (request.id, request.method, request.params) == (id, "m", {"a": 1})
    answer = json.loads(encode_result(request.id, {"ok": True}))
    assert answer == {"jsonrpc": "2.0", "id": id, "result": {"ok": True}} == request.result({"ok": True})


def test_a_call_without_id_is_a_notification_and_one_with_null_is_a_request() -> None:
    assert isinstance(parse(b'{"jsonrpc":"2.0","method":"m"}'), Notification)
    assert isinstance(parse(b'{"jsonrpc":"2.0","method":"m","id":null}'), Request)


def test_absent_and_null_params_are_none() -> None:
    for raw in (b'{"jsonrpc":"2.0","method":"m"}', b'{"jsonrpc":"2.0","method":"m","params":null}'):
        message = parse(raw)
        assert isinstance(message, Notification)
        assert message.params is None
        assert message.raw is raw


def test_results_of_any_kind_and_errors_are_responses() -> None:
    results: list[Any] = [None, 0, "", [], {}, False]
    for result in results:
        message = parse(text({"jsonrpc": "2.0", "id": 1, "result": result}))
        assert isinstance(message, Response)
        assert message.result == result
        assert message.error is None
    message = parse(encode_error(None, -32000, "no", {"x": 1}))
    assert isinstance(message, Response)
    assert message.id is None
    assert message.error == {"code": -32000, "message": "no", "data": {"x": 1}}


def test_null_error_beside_a_result_and_null_result_beside_an_error_are_accepted() -> None:
    message = parse(b'{"jsonrpc":"2.0","id":1,"result":{},"error":null}')
    assert isinstance(message, Response)
    assert message.error is None
    message = parse(b'{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":1,"message":"x"}}')
    assert isinstance(message, Response)
    assert message.error is not None


@pytest.mark.parametrize(
    ("raw", "word"),
    [
        (b"", "whitespace"),
        (b" \n", "whitespace"),
        (b"{", "Parse error"),
        (b"hello", "not JSON"),
        (b'{"a":1} {"b":2}', "trailing"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        (b'{"a":"\xff"}', "not UTF-8 at byte 6"),
        (b'{"a":"\xed\xa0\x80"}', "not UTF-8"),
        (rb'{"a":"\ud800"}', "lone surrogate"),
        (rb'{"a":"\udc00\ud800"}', "lone surrogate"),
        (b'{"a":NaN}', "not JSON"),
        (b'{"a":1e999}', "out of range"),
        (b"[" * 100_000, "nested"),
        (b"[" * 5000 + b"]" * 5000, "nested"),
        (b'{"a":' * (MAX_DEPTH + 1) + b"1" + b"}" * (MAX_DEPTH + 1), "nested deeper"),
        (b"9" * 5000, "out of range"),
    ],
)
def test_what_cannot_be_read_is_a_parse_error_with_id_null(raw: bytes, word: str) -> None:
    message = bad(raw)
    assert message.code == PARSE_ERROR
    assert word in message.message
    assert message.reply() == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": PARSE_ERROR, "message": message.message},
    }


def test_nesting_up_to_the_limit_is_read() -> None:
    inner = b"[" * (MAX_DEPTH - 1) + b"]" * (MAX_DEPTH - 1)
    assert isinstance(parse(b'{"jsonrpc":"2.0","method":"m","params":' + inner + b"}"), Notification)
    assert bad(b'{"jsonrpc":"2.0","method":"m","params":[' + inner + b"]}").code == PARSE_ERROR


def test_many_brackets_side_by_side_are_not_deep() -> None:
    assert isinstance(parse(text({"jsonrpc": "2.0", "method": "m", "params": [[]] * 10_000})), Notification)
    assert isinstance(parse(text({"jsonrpc": "2.0", "method": "[" * 10_000})), Notification)


@pytest.mark.parametrize("value", [1, "text", True, None])
def test_a_message_has_to_be_an_object(value: Any) -> None:
    message = bad(text(value))
    assert (message.code, message.id, message.answerable) == (INVALID_REQUEST, None, True)


@pytest.mark.parametrize(
    ("change", "id"),
    [
        ({"jsonrpc": None}, 5),
        ({"jsonrpc": "1.0"}, 5),
        ({"jsonrpc": 2.0}, 5),
        ({"method": 1}, 5),
        ({"method": None}, 5),
        ({"params": "x"}, 5),
        ({"params": 0}, 5),
        ({"result": 1}, 5),
        ({"error": {}}, 5),
        ({"id": True}, None),
        ({"id": False}, None),
        ({"id": 1.5}, None),
        ({"id": {}}, None),
        ({"id": []}, None),
    ],
    ids=repr,
)
def test_an_invalid_request_is_answered_with_its_id_when_that_can_be_known(change: dict[str, Any], id: Any) -> None:
    message = bad(text({"jsonrpc": "2.0", "id": 5, "method": "m"} | change))
    reply = message.reply()
    assert reply is not None
    assert reply["id"] == id
    assert reply["error"]["code"] == INVALID_REQUEST


def test_an_object_without_anything_is_an_invalid_request() -> None:
    assert bad(b'{"jsonrpc":"2.0","id":7}').reply() is not None
    assert bad(b"{}").reply() is not None


@pytest.mark.parametrize(
    "value",
    [
        {"jsonrpc": "2.0", "method": "m", "params": 1},
        {"method": "m"},
    ],
    ids=repr,
)
def test_what_is_plainly_a_notification_is_never_answered(value: Any) -> None:
    assert bad(text(value)).reply() is None


@pytest.mark.parametrize(
    "value",
    [
        {"jsonrpc": "2.0", "id": 1, "result": 1, "error": {"code": 1, "message": "x"}},
        {"jsonrpc": "2.0", "id": 1, "error": "broken"},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": "1", "message": "x"}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1}},
        {"jsonrpc": "2.0", "id": 1, "error": None},
        {"jsonrpc": "2.0", "result": 1},
        {"id": 1, "result": 1},
        {"jsonrpc": "2.0", "id": True, "result": 1},
    ],
    ids=repr,
)
def test_a_bad_response_is_never_answered(value: Any) -> None:
    assert bad(text(value)).reply() is None


def test_a_bad_response_keeps_its_id_for_whoever_waits() -> None:
    assert bad(b'{"jsonrpc":"2.0","id":3,"error":"broken"}').id == 3


def test_the_last_of_equal_keys_counts() -> None:
    message = parse(b'{"jsonrpc":"2.0","method":"a","method":"b"}')
    assert isinstance(message, Notification)
    assert message.method == "b"


def test_params_are_left_out_unless_given() -> None:
    assert encode_request(0, "m") == b'{"jsonrpc":"2.0","id":0,"method":"m"}'
    assert encode_notification("m") == b'{"jsonrpc":"2.0","method":"m"}'
    assert encode_notification("m", None) == b'{"jsonrpc":"2.0","method":"m","params":null}'
    assert encode_error(1, -1, "x", None).endswith(b'"data":null}}')


# --- batches


def test_a_batch_is_answered_by_one_array() -> None:
    members = parse(
        b'[{"jsonrpc":"2.0","id":1,"method":"a"}, {"jsonrpc":"2.0","method":"n"}, 5, [],'
        b'{"jsonrpc":"2.0","id":null,"method":"b"}, {"jsonrpc":"2.0","id":9,"result":1}]'
    )
    assert isinstance(members, list)
    assert [type(member) for member in members] == [Request, Notification, Malformed, Malformed, Request, Response]
    assert members[1].raw == b'{"jsonrpc":"2.0","method":"n"}'
    batch = Batch(members)
    assert not batch.complete
    batch.add(encode_result(None, "b"))
    assert not batch.complete
    batch.add(encode_result(1, "a"))
    assert batch.complete
    answers = json.loads(batch.text() or b"")
    assert [answer["id"] for answer in answers] == [None, None, None, 1]
    with pytest.raises(ValueError, match="answered"):
        batch.add(b"{}")


def test_a_batch_of_notifications_gets_nothing() -> None:
    members = parse(b'[{"jsonrpc":"2.0","method":"n"},{"jsonrpc":"2.0","id":9,"result":1}]')
    assert isinstance(members, list)
    assert Batch(members).complete
    assert Batch(members).text() is None


def test_a_request_that_is_given_up_leaves_its_place_empty() -> None:
    members = parse(b'[{"jsonrpc":"2.0","id":1,"method":"a"}]')
    assert isinstance(members, list)
    batch = Batch(members)
    batch.give_up()
    assert batch.complete
    assert batch.text() is None


def test_an_empty_and_an_oversized_batch_are_one_invalid_request() -> None:
    assert bad(b"[]").code == INVALID_REQUEST
    assert bad(b"[" + b"1," * MAX_BATCH + b"1]").code == INVALID_REQUEST
    assert isinstance(parse(b"[" + b"1," * (MAX_BATCH - 1) + b"1]"), list)


# --- everything

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)
members = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(("id", "method", "params", "result", "error"), json_values)
    | {"jsonrpc": st.just("2.0") | json_values},
)


@given(st.binary() | json_values.map(text) | members.map(text) | st.lists(members).map(text))
def test_anything_is_read_as_something_and_every_answer_is_valid(raw: bytes) -> None:
    message = parse(raw)
    for member in message if isinstance(message, list) else [message]:
        if isinstance(member, Malformed) and (reply := member.reply()) is not None:
            assert isinstance(parse(json.dumps(reply).encode()), Response)
        if isinstance(member, Request):
            assert isinstance(parse(encode_result(member.id, None)), Response)
