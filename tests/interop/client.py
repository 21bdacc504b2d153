"""A plain client of our own: starts `mockagent`, writes lines, reads lines, and answers whatever it is asked.

Blocking, with a thread for each of the child's two outputs. It has no opinion: what it wrote and read can be shown to a
judge (`tests.transcript`), and a test may write any bytes it likes.
"""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

from tests.transcript import Transcript

Json = dict[str, Any]

PATIENCE = 30.0
"""Seconds after which an answer counts as missing."""

ABLE: Json = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "session": {"compaction": {}, "notices": {}, "configOptions": {"boolean": {}}},
    "auth": {"terminal": True},
    "elicitation": {"form": {}, "url": {}},
}
"""The capabilities of a client that can do everything."""

INFO: Json = {"name": "interop", "version": "1"}

Answer = Callable[[Json], Json]

ANSWERS: dict[str, Json] = {
    "fs/read_text_file": {"content": "one\ntwo\n"},
    "fs/write_text_file": {},
    "terminal/create": {"terminalId": "term_1"},
    "terminal/output": {"output": "hello\n", "truncated": False, "exitStatus": {"exitCode": 0, "signal": None}},
    "terminal/wait_for_exit": {"exitCode": 0, "signal": None},
    "terminal/kill": {},
    "terminal/release": {},
    "elicitation/create": {"action": "decline"},
}


def choose(number: int) -> Answer:
    """Answers permission requests with the option of that number, counted around; -1 is `cancelled`."""

    def answer(params: Json) -> Json:
        if number < 0:
            return {"outcome": {"outcome": "cancelled"}}
        options = params["options"]
        return {"outcome": {"outcome": "selected", "optionId": options[number % len(options)]["optionId"]}}

    return answer


class Child:
    """`mockagent` with pipes on all three standard files.

    Args:
        command: the installed command.
        args: its arguments.
        judge: is shown every message, as far as it is sent and read through this object.
    """

    def __init__(self, command: str, *args: str, judge: Transcript | None = None) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([command, *args], bufsize=0, stdin=pipe, stdout=pipe, stderr=pipe)
        self.judge = judge
        self.permit: Answer = choose(0)
        self.seen: list[Any] = []
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._complaints: list[bytes] = []
        self._complained = threading.Event()
        self._asked = 0
        self._threads = [
            threading.Thread(target=pump, args=(stream, keep), daemon=True)
            for stream, keep in ((self.process.stdout, self._lines.put), (self.process.stderr, self._complain))
            if stream is not None
        ]
        for thread in self._threads:
            thread.start()

    def _complain(self, line: bytes | None) -> None:
        if line is not None:
            self._complaints.append(line)
        self._complained.set()

    def address(self, patience: float = PATIENCE) -> str:
        """`HOST:PORT` of a server, from the line that tells that it accepts connections."""
        assert self._complained.wait(patience), "mockagent told no address"
        told = self.stderr[0] if self.stderr else ""
        assert told.startswith("listening on http://"), self.stderr
        return told.removeprefix("listening on http://")

    @property
    def stderr(self) -> list[str]:
        """The lines on stderr so far; all of them once the process has ended."""
        return [line.decode().rstrip("\n") for line in self._complaints]

    @property
    def complaints(self) -> list[str]:
        """What it said about single messages; the report on the client at the end is not among them."""
        return [line for line in self.stderr if line.startswith("mockagent: ")]

    # --- bytes and messages

    def write(self, data: bytes) -> None:
        """Writes bytes as they are."""
        assert self.process.stdin is not None
        while data:  # unbuffered, so that a write may take only a part
            data = data[self.process.stdin.write(data) or 0 :]

    def send(self, *messages: Json) -> None:
        """Writes messages, one a line, in one write."""
        if self.judge is not None:
            for message in messages:
                self.judge.to_agent(message)
        self.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    def line(self, patience: float = PATIENCE) -> bytes | None:
        """The next line as it came, None at the end.

        Raises:
            TimeoutError: nothing came in time.
        """
        try:
            line = self._lines.get(timeout=patience)
        except queue.Empty:
            raise TimeoutError(f"mockagent wrote nothing for {patience} s; stderr: {self.stderr}") from None
        if line is None:
            self._lines.put(None)  # it stays at its end
        return line

    def receive(self, patience: float = PATIENCE) -> Any:
        """The next message, None at the end."""
        line = self.line(patience)
        if line is None:
            return None
        assert line.endswith(b"\n"), line
        message = json.loads(line)
        self.seen.append(message)
        if self.judge is not None:
            self.judge.from_agent(message)
        return message

    # --- a conversation

    def ask(self, method: str, params: Json) -> int:
        """Sends a request and returns its id."""
        self._asked += 1
        self.send({"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params})
        return self._asked

    def notify(self, method: str, params: Json) -> None:
        """Sends a notification."""
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def step(self, patience: float = PATIENCE) -> Any:
        """Reads one message, and answers it if it is a request."""
        message = self.receive(patience)
        if isinstance(message, dict) and "method" in message and "id" in message:
            self.send({"jsonrpc": "2.0", "id": message["id"], **self._answer(message)})
        return message

    def _answer(self, message: Json) -> Json:
        if message["method"] == "session/request_permission":
            return {"result": self.permit(message["params"])}
        if message["method"] in ANSWERS:
            return {"result": ANSWERS[message["method"]]}
        return {"error": {"code": -32601, "message": "Method not found"}}

    def wait(self, id: Any) -> Json:
        """Reads, and answers what it is asked, until the reply with this id has come."""
        while True:
            message: Any = self.step()
            assert message is not None, f"mockagent left; stderr: {self.stderr}"
            if isinstance(message, dict) and "method" not in message and message.get("id") == id:
                return message

    def call(self, method: str, params: Json) -> Json:
        """A request and its reply."""
        return self.wait(self.ask(method, params))

    def greet(self, capabilities: Json | None = None) -> Json:
        """Initializes the connection."""
        params = {"protocolVersion": 1, "clientCapabilities": capabilities or {}, "clientInfo": INFO}
        result: Json = self.call("initialize", params)["result"]
        return result

    def new(self, cwd: str = "/home/dev/project") -> str:
        """Makes a session."""
        id: str = self.call("session/new", {"cwd": cwd, "mcpServers": []})["result"]["sessionId"]
        return id

    def prompt(self, session: str, text: str) -> Json:
        """Plays one turn; returns the reply."""
        return self.call("session/prompt", said(session, text))

    # --- the end

    def leave(self, patience: float = PATIENCE) -> int:
        """Closes stdin, reads what still comes, and returns the exit status."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        while self.process.stdout is not None and self.receive(patience) is not None:
            pass
        if self.judge is not None:
            self.judge.ended()
        return self.gone(patience)

    def gone(self, patience: float = PATIENCE) -> int:
        """Waits until the process has ended; returns the exit status."""
        status = self.process.wait(patience)
        for thread in self._threads:
            thread.join(patience)
        return status

    def signal(self, number: signal.Signals) -> None:
        """Sends it a signal."""
        self.process.send_signal(number)

    def kill(self) -> None:
        """Ends it, whatever it does, and closes the pipes."""
        self.process.kill()
        self.gone()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


def pump(stream: BinaryIO, keep: Callable[[bytes | None], None]) -> None:
    """Reads lines until the end, and says so with None."""
    held: list[bytes] = []  # the pieces of a line that has no end yet
    while data := stream.read(2**16):
        first, *lines = data.split(b"\n")
        held.append(first)
        for line in lines:
            keep(b"".join(held) + b"\n")
            held = [line]
    if rest := b"".join(held):
        keep(rest)
    keep(None)


def said(session: str, text: str) -> Json:
    """The params of a prompt."""
    return {"sessionId": session, "prompt": [{"type": "text", "text": text}]}


def kinds(messages: Sequence[Any]) -> list[str]:
    """The kind of each update in what was read."""
    return [
        message["params"]["update"]["sessionUpdate"]
        for message in messages
        if isinstance(message, dict) and message.get("method") == "session/update"
    ]
