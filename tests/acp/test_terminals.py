"""The `terminal` step: created, waited for, killed when it takes too long, read, and always released."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness import CWD, Client, Error, Json, Theatre, stop_reason, updates, words

DONE: Json = {"output": "3 passed", "truncated": False, "exitStatus": {"exitCode": 0, "signal": None}}


def turn(steps: str) -> str:
    return f"{{turns: [{{steps: [{steps}]}}], sessions: {{auto_title: null}}}}"


def started(steps: str, **answers: Any) -> Client:
    """A client in whose terminal a program is about to run; its prompt has been sent."""
    client = Theatre(turn(steps)).client()
    usual = {"create": {"terminalId": "t1"}, "kill": {}, "output": DONE, "release": {}}
    client.answers = {f"terminal/{name}": value for name, value in (usual | answers).items()}
    client.prompt(client.new(), run=False)
    settle(client)
    return client


def settle(client: Client) -> None:
    """Reads and answers without any time passing."""
    while client.read():
        client.theatre.stage.pump()


def requests(client: Client) -> list[str]:
    """What the client was asked, in order, and what was taken back."""
    methods = [message["method"] for message in client.sent if "method" in message]
    return [method.removeprefix("terminal/") for method in methods if method != "session/update"]


def exit_with(client: Client, result: Any) -> None:
    """The program ends: the client answers the wait."""
    [wait] = [message for message in client.sent if message.get("method") == "terminal/wait_for_exit"]
    client.answer(wait, result)
    settle(client)


def test_a_program_is_waited_for_read_and_released() -> None:
    client = started(
        "{terminal: {command: pytest, args: [-q, '1'], env: {A: b}, cwd: sub, limit: 100}, "
        "save: {o: /result/output, c: /result/exitStatus/exitCode}, then: "
        "[{when: {outcome: result, text: '3 *'}, steps: [{say: '${saved.o}: ${saved.c}'}]}]}"
    )
    assert requests(client) == ["create", "wait_for_exit"]
    assert client.sent[2]["params"] == {
        "sessionId": client.sent[1]["result"]["sessionId"],
        "command": "pytest",
        "args": ["-q", "1"],
        "env": [{"name": "A", "value": "b"}],
        "cwd": f"{CWD}/sub",
        "outputByteLimit": 100,
    }
    exit_with(client, {"exitCode": 0, "signal": None})
    assert requests(client) == ["create", "wait_for_exit", "output", "release"]
    assert (words(client.sent), stop_reason(client.sent)) == ("3 passed: 0", "end_turn")


def test_the_exit_status_of_the_wait_stands_in_where_the_output_has_none() -> None:
    steps = "{terminal: a, save: {c: /result/exitStatus/exitCode}}, {say: '${saved.c}'}"
    client = started(steps, output={"output": "", "truncated": False})
    exit_with(client, {"exitCode": 3})
    assert words(client.sent) == "3"


def test_a_program_that_takes_too_long_is_killed_and_still_read() -> None:
    ways = "[{when: {outcome: timeout}, steps: [{say: late}]}]"
    client = started(f"{{terminal: {{command: a, kill_after: 5s}}, then: {ways}}}")
    client.theatre.run(until=4.9)
    assert requests(client) == ["create", "wait_for_exit"]
    client.theatre.run(until=5.1)
    settle(client)
    assert requests(client) == ["create", "wait_for_exit", "kill"]
    exit_with(client, {"exitCode": None, "signal": "SIGKILL"})
    assert requests(client) == ["create", "wait_for_exit", "kill", "output", "release"]
    assert (words(client.sent), stop_reason(client.sent)) == ("late", "end_turn")


def test_a_client_that_does_not_tell_of_the_exit_is_told_not_to_bother() -> None:
    client = started("{terminal: {command: a, kill_after: 5s}}, {say: on}")
    client.run()
    assert requests(client) == ["create", "wait_for_exit", "kill", "output", "release", "$/cancel_request"]
    assert (words(client.sent), stop_reason(client.sent)) == ("on", "end_turn")


def test_a_program_that_ends_in_time_is_not_killed() -> None:
    client = started("{terminal: {command: a, kill_after: 5s}}, {wait: 1m}, {say: on}")
    exit_with(client, {"exitCode": 0})
    client.run()
    assert "kill" not in requests(client)


@pytest.mark.parametrize("answer", [Error(), {}, {"terminalId": 5}, []])
def test_a_terminal_that_cannot_be_had_is_an_error(answer: Any) -> None:
    client = started("{terminal: a, then: [{when: {outcome: error}, steps: [{say: no}]}]}", create=answer)
    assert (requests(client), words(client.sent)) == (["create"], "no")


@pytest.mark.parametrize("answer", [Error(), {}, {"output": 1}])
def test_an_output_that_is_none_is_an_error_and_the_terminal_released(answer: Any) -> None:
    client = started("{terminal: a, then: [{when: {outcome: error}, steps: [{say: no}]}]}", output=answer)
    exit_with(client, {"exitCode": 0})
    assert (requests(client)[-1], words(client.sent)) == ("release", "no")


def test_a_tool_call_shows_the_terminal_as_soon_as_it_is_there() -> None:
    client = started("{tool_start: {id: c, title: T}}, {terminal: {command: a, tool: c}}")
    last = updates(client.sent)[-1]
    assert last["content"] == [{"type": "terminal", "terminalId": "t1"}]
    assert (last["toolCallId"], last["status"]) == ("c", "in_progress")


# --- winding up


def cancel(client: Client) -> None:
    session = client.sent[1]["result"]["sessionId"]
    client.notify("session/cancel", {"sessionId": session})
    settle(client)


def test_a_cancelled_turn_ends_when_its_terminal_is_released() -> None:
    client = started("{terminal: a}, {say: never}")
    client.answers["terminal/release"] = None
    cancel(client)
    assert requests(client) == ["create", "wait_for_exit", "kill", "release"]
    assert not any("stopReason" in message.get("result", {}) for message in client.sent)
    [release] = [message for message in client.sent if message.get("method") == "terminal/release"]
    exit_with(client, {"exitCode": None, "signal": "SIGTERM"})
    client.answer(release, {})
    settle(client)
    assert (stop_reason(client.sent), words(client.sent)) == ("cancelled", "")


def test_a_terminal_that_is_created_too_late_is_released_all_the_same() -> None:
    client = started("{terminal: a}, {say: never}", create=None)
    cancel(client)
    assert requests(client) == ["create", "$/cancel_request"]
    client.answer(client.sent[2], {"terminalId": "t9"})
    settle(client)
    assert requests(client) == ["create", "$/cancel_request", "release"]
    assert client.sent[-2]["params"]["terminalId"] == "t9"
    assert stop_reason(client.sent) == "cancelled"


def test_a_terminal_that_a_cancelled_client_never_released_holds_nobody_up_for_long() -> None:
    client = started("{terminal: a}", release=None)
    cancel(client)
    client.run()
    assert stop_reason(client.sent) == "cancelled"
    assert client.theatre.now < 3


def test_a_time_out_of_the_step_winds_it_up_too() -> None:
    client = started("{terminal: a, timeout: 1s, then: [{when: {outcome: timeout}, steps: [{say: late}]}]}")
    client.theatre.run(until=1.1)
    settle(client)
    assert requests(client) == ["create", "wait_for_exit", "kill", "release", "$/cancel_request"]
    assert words(client.sent) == "late"


def test_a_turn_that_ends_elsewhere_releases_what_it_started() -> None:
    client = started("together: [[{terminal: a}], [{wait: 1s}, {stop: end_turn}]]")
    client.run()
    assert "release" in requests(client)
    assert stop_reason(client.sent) == "end_turn"


@pytest.mark.parametrize(("capabilities", "cwd"), [({}, "sub"), ({"terminal": True}, "/etc")])
def test_without_terminals_or_outside_of_the_roots_otherwise_is_played(capabilities: Json, cwd: str) -> None:
    client = Theatre(turn(f"{{terminal: {{command: a, cwd: {cwd}}}, otherwise: [{{say: no}}]}}")).client(
        capabilities=capabilities
    )
    client.prompt(client.new())
    assert (requests(client), words(client.sent)) == ([], "no")


def test_a_client_that_leaves_ends_it() -> None:
    client = started("{terminal: a}, {say: on}")
    client.connection.lost()
    client.theatre.run()
    assert not client.theatre.agent.playing
