"""Measures ACP over stdio: how soon an agent answers, and how fast it streams, side by side with its peers.

    python bench/stdio.py [start] [burst] [--rounds N] [--chunks N]

Every figure is the best of several rounds, taken in turns, and shown as a ratio: seconds mean nothing on another
machine. The client is one loop over a pipe that counts lines, so that it is never the slower end.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
MODULES = ROOT / "tests" / "interop" / "node_modules"
PYTHON = sys.executable

INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}
NEW = {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": "/tmp", "mcpServers": []}}


class Client:
    """The fastest client there is: it counts line ends."""

    def __init__(self, argv: list[str]) -> None:
        self.process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
        )
        self._rest = b""

    def send(self, message: object) -> None:
        """Writes one message."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")

    def line(self) -> bytes:
        """Reads one line."""
        while b"\n" not in self._rest:
            self._rest += self._read()
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def until(self, mark: bytes) -> int:
        """Counts lines until one that holds the mark has come."""
        count = self._rest.count(b"\n")
        tail = self._rest
        while mark not in tail:
            data = self._read()
            count += data.count(b"\n")
            tail = tail[-256:] + data
        self._rest = b""
        return count

    def _read(self) -> bytes:
        assert self.process.stdout is not None
        data = os.read(self.process.stdout.fileno(), 1 << 20)
        if not data:
            raise EOFError("the agent is gone")
        return data

    def close(self) -> None:
        """Closes stdin and waits."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()


def start(argv: list[str]) -> float:
    """Seconds from launching to the reply to `initialize`."""
    began = time.perf_counter()
    client = Client(argv)
    client.send(INITIALIZE)
    client.line()
    seconds = time.perf_counter() - began
    client.close()
    return seconds


def run(argv: list[str]) -> float:
    """Seconds that a program takes from start to end."""
    began = time.perf_counter()
    subprocess.run(argv, check=True)
    return time.perf_counter() - began


def burst(argv: list[str], chunks: int) -> float:
    """Seconds from the prompt to its reply, with all chunks between them."""
    client = Client(argv)
    client.send(INITIALIZE)
    client.line()
    client.send(NEW)
    session = json.loads(client.line())["result"]["sessionId"]
    params = {"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}
    began = time.perf_counter()
    client.send({"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": params})
    count = client.until(b'"stopReason"')
    seconds = time.perf_counter() - began
    if count < chunks + 1:
        raise RuntimeError(f"{argv}: only {count} lines came")
    client.close()
    return seconds


def best(rounds: int, cases: dict[str, Callable[[], float]]) -> dict[str, float]:
    """The best time of each case; they take turns, so that all see the same machine."""
    times: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, case in cases.items():
            times[name].append(case())
    return {name: min(taken) for name, taken in times.items()}


def show(title: str, times: dict[str, float], base: str) -> None:
    """Prints a table of ratios to one of the cases."""
    print(f"\n{title}")
    width = max(map(len, times))
    for name, seconds in times.items():
        print(f"  {name:<{width}}  {seconds * 1000:9.1f} ms   {seconds / times[base]:6.2f}")


def mockagent(*arguments: str) -> list[str]:
    """How to launch the mock of this environment."""
    return [shutil.which("mockagent", path=str(Path(PYTHON).parent)) or "mockagent", *arguments]


def peers(chunks: int) -> dict[str, list[str]]:
    """Agents to compare with, as far as this machine can run them."""
    found = {"agent with the Python SDK": [PYTHON, str(HERE / "peers" / "python_sdk.py"), str(chunks)]}
    node = shutil.which("node")
    if node and MODULES.is_dir():
        found["agent with the npm SDK"] = [node, str(HERE / "peers" / "node_sdk.mjs"), str(chunks), str(MODULES)]
    return found


def scenario(folder: str, chunks: int) -> str:
    """A scenario file whose only turn says so many words."""
    path = Path(folder) / "burst.yaml"
    words = " ".join(["word"] * chunks)
    path.write_text(f"pace: {{chunk: word}}\nsessions: {{auto_title: null}}\nturns:\n  - steps: [{{say: {words}}}]\n")
    return str(path)


def main() -> None:
    """Runs what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", choices=["start", "burst", []], default=[])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--chunks", type=int, default=20_000)
    given = parser.parse_args()
    wanted = given.what or ["start", "burst"]
    with tempfile.TemporaryDirectory() as folder:
        file, journal = scenario(folder, given.chunks), str(Path(folder) / "journal.jsonl")
        others = peers(given.chunks)
        if "start" in wanted:
            trio = "bare `import trio`"
            cases = {
                trio: lambda: run([PYTHON, "-c", "import trio"]),
                "mockagent, bundled scenario": lambda: start(mockagent("acp", "echo")),
                "mockagent, YAML file": lambda: start(mockagent("acp", str(ROOT / "scenarios" / "tools.yaml"))),
            }
            cases |= {name: lambda argv=argv: start(argv) for name, argv in others.items()}  # type: ignore[misc]
            show("From launch to the reply to initialize (ratio to `import trio`)", best(given.rounds, cases), trio)
        if "burst" in wanted:
            loop = "bare trio loop, a write a line"
            bare = [PYTHON, str(HERE / "peers" / "bare_trio.py"), str(given.chunks)]
            argvs = {
                loop: bare,
                "mockagent": mockagent("acp", file),
                "mockagent with --journal": mockagent("acp", file, "--journal", journal),
                **others,
            }
            cases = {name: lambda argv=argv: burst(argv, given.chunks) for name, argv in argvs.items()}  # type: ignore[misc]
            title = f"A turn of {given.chunks:,} chunks (ratio to the bare loop)"
            show(title, best(max(given.rounds // 3, 1), cases), loop)


if __name__ == "__main__":
    main()
