"""Anything on stdin, and every way in which a client may leave: over the real process, with real files and signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.interop.client import Child

POSIX = sys.platform != "win32"

INIT = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize",'
    b'"params":{"protocolVersion":1,"clientInfo":{"name":"interop","version":"1"}}}\n'
)
NEW = b'{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/home/dev","mcpServers":[]}}\n'


def limit(child: Child, seconds: float, since: float) -> None:
    """The two seconds of the promise, with room for a busy machine."""
    assert time.monotonic() - since < seconds + 8, child.stderr


# --- bytes

PARSE = -32700
INVALID = -32600

BAD = {
    "no JSON": (b"hello\n", PARSE),
    "half an object": (b'{"jsonrpc":"2.0","id":1,\n', PARSE),
    "two values in a line": (b"{} {}\n", PARSE),
    "not UTF-8": (b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}\n', PARSE),
    "UTF-16": ('{"jsonrpc":"2.0","id":1,"method":"initialize"}'.encode("utf-16") + b"\n", PARSE),
    "NULs": (b"\0\0\0\0\n", PARSE),
    "a NUL in the middle": (b'{"jsonrpc":"2.0",\0"id":1}\n', PARSE),
    "control characters": (bytes(range(1, 10)) + bytes(range(14, 32)) + b"\n", PARSE),
    "NaN": (b'{"jsonrpc":"2.0","id":NaN,"method":"initialize"}\n', PARSE),
    "a number": (b"42\n", INVALID),
    "a text": (b'"initialize"\n', INVALID),
    "null": (b"null\n", INVALID),
    "an empty object": (b"{}\n", INVALID),
    "an empty batch": (b"[]\n", INVALID),
    "no version": (b'{"id":1,"method":"initialize"}\n', INVALID),
    "another version": (b'{"jsonrpc":"1.0","id":1,"method":"initialize"}\n', INVALID),
    "a method that is no text": (b'{"jsonrpc":"2.0","id":1,"method":7}\n', INVALID),
    "an id that is an object": (b'{"jsonrpc":"2.0","id":{},"method":"initialize"}\n', INVALID),
    "params that are a number": (b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":3}\n', INVALID),
    "nested too deeply": (b"[" * 100_000 + b"\n", PARSE),
    "an answer to nothing": (b'{"jsonrpc":"2.0","id":77,"result":{}}\n', None),
    "a blank line": (b"\n", None),
    "spaces and tabs": (b" \t \n", None),
    "a CR": (b"\r\n", None),
}


@pytest.mark.parametrize(("data", "code"), BAD.values(), ids=BAD)
def test_bad_bytes_get_the_right_error_or_silence_and_the_next_message_is_served(
    start: type[Child], data: bytes, code: int | None
) -> None:
    child = start("acp", "hello")
    child.write(data + INIT)
    answers = [child.receive()]
    if code is not None:
        answers.append(child.receive())
        assert answers[0]["error"]["code"] == code
        assert answers[0]["jsonrpc"] == "2.0"
    assert answers[-1]["id"] == 0
    assert answers[-1]["result"]["protocolVersion"] == 1
    assert child.leave() == 0
    assert len(child.complaints) == (code is not None), child.stderr
    assert all(len(line) < 400 for line in child.complaints)
    assert not any("Traceback" in line for line in child.stderr)


def test_an_answer_that_makes_no_sense_is_only_complained_of(start: type[Child]) -> None:
    child = start("acp", "hello")
    child.write(b'{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}\n' + INIT)
    assert child.receive()["id"] == 0
    assert child.leave() == 0
    assert len(child.complaints) == 1


def test_a_batch_is_answered_with_a_batch(start: type[Child]) -> None:
    child = start("acp", "hello")
    child.write(b"[" + INIT.strip() + b"," + NEW.strip() + b',{"jsonrpc":"2.0","method":"_note"},7]\n')
    answer = child.receive()
    assert isinstance(answer, list)
    assert sorted(str(member["id"]) for member in answer) == ["0", "1", "None"]
    assert child.leave() == 0


def test_a_line_of_65_megabytes_costs_only_that_line(start: type[Child]) -> None:
    child = start("acp", "hello")
    piece = b"x" * 2**20
    for _ in range(65):
        child.write(piece)
    child.write(b"\n" + INIT)
    refused = child.receive()
    assert refused["error"]["code"] == INVALID
    assert refused["id"] is None
    assert child.receive()["id"] == 0
    assert child.leave() == 0
    assert len(child.complaints) == 1


def test_a_message_of_some_megabytes_is_served(start: type[Child]) -> None:
    child = start("acp", "echo")
    child.greet()
    text = "word " * 500_000
    reply = child.prompt(child.new(), text)
    assert reply["result"] == {"stopReason": "end_turn"}
    said = "".join(m["params"]["update"]["content"]["text"] for m in child.seen if m.get("method") == "session/update")
    assert said == f"Turn 1: you said “{text}”."
    assert child.leave() == 0


def test_messages_may_come_byte_by_byte(start: type[Child]) -> None:
    child = start("acp", "hello")
    for byte in INIT + NEW:
        child.write(bytes([byte]))
    assert [child.receive()["id"], child.receive()["id"]] == [0, 1]
    assert child.leave() == 0


def test_ids_of_every_kind_come_back_as_they_were(start: type[Child]) -> None:
    child = start("acp", "hello")
    child.greet()
    ids = ["text", "", "ümlaut 🐙", 0, -1, 2**53, 2**63 - 1, "1"]
    for id in ids:
        child.send({"jsonrpc": "2.0", "id": id, "method": "session/list", "params": {}})
        answer = child.receive()
        assert answer["id"] == id
        assert type(answer["id"]) is type(id)
    assert child.leave() == 0


# --- scenarios


BROKEN = {
    "an unknown key": ("name: x\nsummary: y\ntruns: []\n", "scenario.yaml:3:1: "),
    "no YAML": ("name: [\n", "scenario.yaml:2:1: "),
    "empty": ("", "scenario.yaml:1:1: "),
}


@pytest.mark.parametrize(("text", "message"), BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("mode", ["acp", "serve"])
def test_a_broken_scenario_is_told_as_check_tells_it(
    command: str, tmp_path: Path, text: str, message: str, mode: str
) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(text)
    done = subprocess.run([command, mode, str(path)], input=INIT, capture_output=True, timeout=30, check=False)
    checked = subprocess.run([command, "check", str(path)], capture_output=True, timeout=30, check=False)
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr == checked.stdout
    assert message in done.stderr.decode()
    assert checked.returncode == 1


def test_a_scenario_that_is_not_there_is_named(command: str) -> None:
    done = subprocess.run([command, "acp", "helo"], input=INIT, capture_output=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"helo" in done.stderr
    assert b"Traceback" not in done.stderr


# --- how it ends


def test_what_was_read_is_answered_and_the_process_leaves_within_two_seconds(start: type[Child]) -> None:
    child = start("acp", "streaming")
    since = time.monotonic()
    child.write(INIT)
    child.receive()
    child.write(NEW)
    session = child.receive()["result"]["sessionId"]
    prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "hello"}]}
    child.send({"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": prompt})
    assert child.leave() == 0
    limit(child, 2, since)
    assert [message["id"] for message in child.seen if "id" in message] == [0, 1, 2]
    assert child.stderr == []


def test_a_pipe_of_lines_is_answered(command: str) -> None:
    done = subprocess.run([command, "acp"], input=INIT + NEW, capture_output=True, timeout=30, check=False)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["id"] for answer in answers if "id" in answer] == [0, 1]
    assert done.returncode == 0
    assert b"mockagent: " not in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_turn_without_end_is_cancelled_at_eof(start: type[Child]) -> None:
    child = start("acp", "stops/cancelled")
    child.greet()
    session = child.new()
    since = time.monotonic()
    id = child.ask("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]})
    assert child.leave() == 0
    limit(child, 2, since)
    assert {"jsonrpc": "2.0", "id": id, "result": {"stopReason": "cancelled"}} in child.seen


@pytest.mark.skipif(not POSIX, reason="signals are POSIX")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_sigterm_and_sigint_end_it_in_order(start: type[Child], number: signal.Signals) -> None:
    child = start("acp", "stops/cancelled")
    child.greet()
    child.ask("session/prompt", {"sessionId": child.new(), "prompt": [{"type": "text", "text": "go"}]})
    child.receive()
    since = time.monotonic()
    child.signal(number)
    assert child.gone() == 0
    limit(child, 2, since)
    assert child.stderr == []


def test_a_closed_stdout_ends_it_without_a_traceback(command: str) -> None:
    with subprocess.Popen(
        [command, "acp", "streaming"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        for message in (INIT, NEW):
            child.stdin.write(message)
            child.stdin.flush()
            session = json.loads(child.stdout.readline())["result"].get("sessionId")
        child.stdout.close()
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}
        child.stdin.write(
            json.dumps({"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": prompt}).encode()
        )
        child.stdin.write(b"\n")
        child.stdin.flush()
        assert child.wait(30) == 0
        assert child.stderr.read() == b""


def test_no_standard_files_at_all(command: str) -> None:
    """Whoever starts it may have closed them."""
    code = f"import os; os.closerange(0, 3); os.execv({command!r}, [{command!r}, 'acp', 'hello'])"
    assert subprocess.run([sys.executable, "-c", code], timeout=30, check=False).returncode == 0


def test_stdin_and_stdout_may_be_files(command: str, tmp_path: Path) -> None:
    asked = tmp_path / "in.jsonl"
    asked.write_bytes(INIT + NEW)
    with asked.open("rb") as stdin, (tmp_path / "out.jsonl").open("wb") as stdout:
        done = subprocess.run([command, "acp", "hello"], stdin=stdin, stdout=stdout, timeout=30, check=False)
    assert done.returncode == 0
    answers = [json.loads(line) for line in (tmp_path / "out.jsonl").read_bytes().splitlines()]
    assert [answer["id"] for answer in answers] == [0, 1]


def test_stdout_and_stderr_may_be_one_file(command: str, tmp_path: Path) -> None:
    path = tmp_path / "both.txt"
    with path.open("wb") as both:
        done = subprocess.run(
            [command, "acp", "hello"], input=b"bad\n" + INIT, stdout=both, stderr=both, timeout=30, check=False
        )
    assert done.returncode == 0
    lines = path.read_bytes().splitlines()
    assert sum(line.startswith(b"mockagent: ") for line in lines) == 1
    assert sum(line.startswith(b"{") for line in lines) == 2


# --- terminals


@pytest.mark.skipif(not POSIX, reason="there are no pseudo-terminals")
@pytest.mark.parametrize("how", ["kill -9", "SIGTERM"])
def test_the_terminal_is_as_it_was(command: str, how: str) -> None:
    import fcntl
    import pty
    import termios

    main, terminal = pty.openpty()
    try:
        before = (termios.tcgetattr(terminal), fcntl.fcntl(terminal, fcntl.F_GETFL))
        child = subprocess.Popen([command, "acp", "hello"], stdin=terminal, stdout=terminal, stderr=terminal)
        os.write(main, INIT)
        seen = b""
        while b"protocolVersion" not in seen.replace(INIT.strip(), b""):
            seen += os.read(main, 4096)
        child.send_signal(signal.SIGKILL if how == "kill -9" else signal.SIGTERM)
        status = child.wait(30)
        assert status == (-signal.SIGKILL if how == "kill -9" else 0)
        assert (termios.tcgetattr(terminal), fcntl.fcntl(terminal, fcntl.F_GETFL)) == before
        assert not fcntl.fcntl(terminal, fcntl.F_GETFL) & os.O_NONBLOCK
    finally:
        os.close(main)
        os.close(terminal)


@pytest.mark.skipif(not POSIX, reason="file descriptions are POSIX")
def test_a_pipe_that_stderr_shares_stays_blocking_for_its_other_owners(command: str) -> None:
    import fcntl

    reader, writer = os.pipe()
    try:
        child = subprocess.Popen([command, "acp", "hello"], stdin=subprocess.PIPE, stdout=writer, stderr=writer)
        assert child.stdin is not None
        child.stdin.write(INIT)
        child.stdin.flush()
        assert os.read(reader, 4096).startswith(b"{")
        assert not fcntl.fcntl(writer, fcntl.F_GETFL) & os.O_NONBLOCK
        child.kill()
        child.wait(30)
        child.stdin.close()
    finally:
        os.close(reader)
        os.close(writer)


# --- many


def test_ten_processes_at_once(start: type[Child]) -> None:
    children = [start("acp", "echo", "--speed", "0") for _ in range(10)]
    for child in children:
        child.ask("initialize", {"protocolVersion": 1})
    for number, child in enumerate(children):
        child.wait(1)
        child.prompt(child.new(), f"say {number}")
    for number, child in enumerate(children):
        chunk = next(message for message in child.seen if message.get("method") == "session/update")
        assert chunk["params"]["update"]["content"]["text"] == str(number)
        assert child.leave() == 0


def test_ten_thousand_sessions_on_one_connection(start: type[Child]) -> None:
    child = start("acp", "hello", "--speed", "0")
    child.greet()
    line = b'{"jsonrpc":"2.0","id":"%d","method":"session/new","params":{"cwd":"/home/dev","mcpServers":[]}}\n'
    ids = set()
    for block in range(10):
        child.write(b"".join(line % (block * 1000 + number) for number in range(1000)))
        ids |= {child.receive()["result"]["sessionId"] for _ in range(1000)}
    assert len(ids) == 10_000
    assert child.prompt(min(ids), "still there?")["result"] == {"stopReason": "end_turn"}
    assert child.prompt(max(ids), "and you?")["result"] == {"stopReason": "end_turn"}
    assert child.leave() == 0
