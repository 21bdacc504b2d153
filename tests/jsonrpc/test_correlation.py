"""Correlation: each answer finds its request once, whatever the order."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mockagent.jsonrpc.correlation import InFlight, Lost, Pending
from mockagent.jsonrpc.messages import Request, Response, encode_request, encode_result, parse


def response(id: Any, result: Any = None) -> Response:
    message = parse(encode_result(id, result))
    assert isinstance(message, Response)
    return message


def request(id: Any, method: str = "m") -> Request:
    message = parse(encode_request(id, method))
    assert isinstance(message, Request)
    return message


def test_ids_count_from_the_first() -> None:
    assert [Pending().open("m", print) for _ in range(2)] == [0, 0]
    pending = Pending(first=1)
    assert [pending.open("m", print) for _ in range(3)] == [1, 2, 3]


@given(st.permutations(range(6)))
def test_answers_in_any_order_reach_their_own_callback(order: list[int]) -> None:
    got: list[tuple[int, Any]] = []
    pending = Pending()
    for number in range(6):

        def answered(answer: Response | Lost, number: int = number) -> None:
            assert isinstance(answer, Response)
            got.append((number, answer.result))

        pending.open("m", answered)
    for id in order:
        assert pending.settle(response(id, f"r{id}")) is not None
    assert got == [(id, f"r{id}") for id in order]
    assert len(pending) == 0


def test_an_unknown_and_a_second_answer_are_told_apart() -> None:
    pending = Pending()
    calls: list[Any] = []
    id = pending.open("fs/read", calls.append, context="s1")
    entry = pending.settle(response(id))
    assert entry is not None
    assert entry.context == "s1"
    assert len(calls) == 1
    assert pending.settle(response(id)) is None
    assert pending.settled(id) == "fs/read"
    assert pending.settle(response("0")) is None
    assert pending.settled("0") is None
    assert len(calls) == 1


def test_the_memory_of_settled_ids_is_bounded() -> None:
    pending = Pending(remembered=2)
    for _ in range(3):
        pending.settle(response(pending.open("m", lambda answer: None)))
    assert [pending.settled(id) for id in range(3)] == [None, "m", "m"]


def test_when_the_connection_ends_all_requests_are_lost_in_order() -> None:
    pending = Pending()
    got: list[Any] = []
    for name in "ab":
        pending.open("m", lambda answer, name=name: got.append((name, answer)))  # type: ignore[misc]
    pending.fail_all("gone")
    assert got == [("a", Lost("gone")), ("b", Lost("gone"))]
    assert len(pending) == 0
    pending.fail_all("again")
    assert len(got) == 2


def test_a_request_opened_while_all_fail_stays_open() -> None:
    pending = Pending()

    def ask_again(answer: Response | Lost) -> None:
        pending.open("again", print)

    pending.open("m", ask_again)
    pending.fail_all("gone")
    assert [entry.method for entry in pending] == ["again"]


def test_a_renamed_request_is_answered_under_the_id_it_left_with() -> None:
    pending = Pending()
    got: list[Any] = []
    first, second = pending.open("a", got.append), pending.open("b", got.append)
    assert pending.rename(first, "odd")
    assert not pending.rename(first, "x")
    assert pending.settle(response(first)) is None
    entry = pending.settle(response("odd"))
    assert entry is not None
    assert entry.method == "a"
    third = pending.open("c", got.append)
    assert pending.rename(third, second)
    assert got[-1] == Lost("another request left under the same id")


def test_an_id_taken_by_a_renamed_request_is_not_given_again() -> None:
    pending = Pending()
    pending.rename(pending.open("a", print), 1)
    assert pending.open("b", print) == 2


def test_a_discarded_request_hears_nothing() -> None:
    pending = Pending()
    calls: list[Any] = []
    id = pending.open("m", calls.append)
    assert pending.discard(id) is not None
    pending.settle(response(id))
    assert calls == []
    assert pending.discard(id) is None


def test_a_duplicate_id_is_refused_while_the_first_is_open() -> None:
    flight: InFlight[str] = InFlight()
    for id in (1, "1", None, 0, ""):
        assert flight.open(request(id), f"v{id}") is None
    refusal = flight.open(request(1), "second")
    assert refusal is not None
    assert refusal["id"] == 1
    assert refusal["error"]["code"] == -32600
    assert "still being answered" in str(refusal)
    assert flight.find(1) == "v1" == flight.close(1)
    assert flight.open(request(1), "again") is None


def test_a_cancel_finds_its_request_and_nothing_else() -> None:
    flight: InFlight[str] = InFlight()
    flight.open(request(1), "one")
    flight.open(request(None), "null")
    assert flight.find(1) == "one"
    assert flight.find(None) == "null"
    odd: list[Any] = [True, "1", 2, [1], {}]
    assert [flight.find(id) for id in odd] == [None] * 5
    assert flight.close(7) is None
    assert flight.clear() == ["one", "null"]
    assert len(flight) == 0
