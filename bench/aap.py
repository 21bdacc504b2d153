"""Measures AAP: how fast a turn streams, side by side with its peers, and how long a page of a million sessions takes.

    python bench/aap.py [stream] [list] [--rounds N] [--chunks N] [--sdk FOLDER]

Every figure is the best of several rounds, taken in turns, and shown as a ratio: seconds mean nothing on another
machine. The client is one loop over a socket that counts events, so that it is never the slower end. Peers that are
not installed are left out: uvicorn and Starlette come with `pip install -e '.[bench]'`; AAP's own server is not on npm,
`--sdk` names a checkout of its TypeScript SDK after `pnpm install && pnpm -r build`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path

from stdio import best, mockagent, show

HERE = Path(__file__).resolve().parent
PEERS = HERE / "peers"
PATIENCE = 20.0
"""Seconds that a server gets to start."""

TURN = {"stream": "delta", "messages": [{"role": "user", "content": "go"}]}
STOP = b"event: turn_stop"


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def serving(argv: list[str], port: int, cwd: Path | None = None) -> Iterator[None]:
    """Runs a server, from when it accepts connections to the end of the block."""
    process = subprocess.Popen(argv, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(f"{argv} does not listen") from None
                time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait(10)


def ask(port: int, method: str, path: str, body: object = None) -> socket.socket:
    """Sends a request on a connection of its own."""
    data = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nConnection: close\r\n"
    connection = socket.create_connection(("127.0.0.1", port), 30)
    connection.sendall(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
    return connection


def reply(port: int, method: str, path: str, body: object = None) -> dict[str, object]:
    """A request and its answer in JSON."""
    with ask(port, method, path, body) as connection, connection.makefile("rb") as answer:
        _, _, text = answer.read().partition(b"\r\n\r\n")
    read: dict[str, object] = json.loads(text)
    return read


def stream(port: int, path: str, chunks: int) -> float:
    """Seconds from the request for a turn to its last event."""
    began = time.perf_counter()
    count, tail = 0, b""
    with ask(port, "POST", path, TURN) as connection:
        while STOP not in tail:
            data = connection.recv(1 << 20)
            if not data:
                break
            whole = tail + data
            count += whole.count(b"event: text_delta\n") - tail.count(b"event: text_delta\n")
            tail = whole[-64:]
            if STOP in whole:
                break
    seconds = time.perf_counter() - began
    if count != chunks:
        raise RuntimeError(f"only {count} of {chunks} events came: {whole[:300]!r}")
    return seconds


def turn(port: int, chunks: int) -> Callable[[], float]:
    """A turn of mockagent, in a session of its own, whose making is not counted."""

    def run() -> float:
        made = reply(port, "POST", "/aap/sessions", {"agent": {"name": "mock-agent"}})
        return stream(port, f"/aap/sessions/{made['sessionId']}/turns", chunks)

    return run


def scenario(folder: str, name: str, text: str) -> str:
    """A scenario file."""
    path = Path(folder) / f"{name}.yaml"
    path.write_text(f"sessions: {{auto_title: null, {text}", encoding="utf-8")
    return str(path)


def streams(folder: str, rounds: int, chunks: int, sdk: Path | None) -> None:
    """A turn with many deltas, next to the peers that are here."""
    words = " ".join(["word"] * chunks)
    file = scenario(folder, "burst", f"}}\npace: {{chunk: word}}\nturns:\n  - steps: [{{say: {words}}}]\n")
    journal = str(Path(folder) / "journal.jsonl")
    floor = "bare h11 loop, an event a write"
    ports = {name: free_port() for name in (floor, "mockagent", "journal", "uvicorn", "sdk")}
    port = ports[floor]
    with ExitStack() as running:

        def start(name: str, argv: list[str], cwd: Path | None = None) -> int:
            running.enter_context(serving(argv, ports[name], cwd))
            return ports[name]

        start(floor, [sys.executable, str(PEERS / "bare_h11.py"), str(port), str(chunks)])
        cases = {floor: lambda: stream(port, "/sessions/s/turns", chunks)}
        ours = start("mockagent", mockagent("serve", file, "--port", str(ports["mockagent"])))
        cases["mockagent"] = turn(ours, chunks)
        noted = start("journal", mockagent("serve", file, "--port", str(ports["journal"]), "--journal", journal))
        cases["mockagent with --journal"] = turn(noted, chunks)
        if find_spec("uvicorn") and find_spec("starlette"):
            argv = [sys.executable, str(PEERS / "starlette_app.py"), str(ports["uvicorn"]), str(chunks)]
            theirs = start("uvicorn", argv)
            cases["uvicorn with Starlette"] = lambda: stream(theirs, "/sessions/s/turns", chunks)
        else:
            print("left out: uvicorn and Starlette are not installed (pip install -e '.[bench]')")
        if sdk is not None:
            server = sdk / "packages" / "server"
            copy = shutil.copy(PEERS / "aap_sdk.ts", server)
            tsx = next(
                folder / "node_modules/.bin/tsx"
                for folder in (server, sdk)
                if (folder / "node_modules/.bin/tsx").exists()
            )
            own = start("sdk", [str(tsx), copy, str(ports["sdk"]), str(chunks)], server)
            cases["AAP's TypeScript server"] = lambda: stream(own, "/sessions/s/turns", chunks)
        else:
            print("left out: AAP's own server (--sdk FOLDER names a checkout of its TypeScript SDK)")
        show(f"A turn of {chunks:,} text_delta events (ratio to the bare loop)", best(rounds, cases), floor)


def pages(folder: str, rounds: int) -> None:
    """Pages of the list: the first, and hundred after it, of few sessions and of many."""
    small, large = "100 sessions", "1,000,000 sessions"
    with ExitStack() as running:
        cases: dict[str, Callable[[], float]] = {}
        for name, count in ((small, 100), (large, 1_000_000)):
            file = scenario(folder, f"list-{count}", f"page_size: 50, synthetic: {{count: {count}}}}}\n")
            port = free_port()
            running.enter_context(serving(mockagent("serve", file, "--port", str(port)), port))
            cases[f"first page of {name}"] = lambda port=port: walk(port, 1)  # type: ignore[misc]
        cases[f"100 pages of {large}"] = lambda port=port: walk(port, 100)  # type: ignore[misc]
        show(
            "Pages of 50 sessions (ratio to the first page of a short list)",
            best(rounds, cases),
            f"first page of {small}",
        )


def walk(port: int, count: int) -> float:
    """Seconds for so many pages in a row."""
    began = time.perf_counter()
    query = ""
    for _ in range(count):
        page = reply(port, "GET", f"/aap/sessions{query}")
        if len(page["sessions"]) != 50:  # type: ignore[arg-type]
            raise RuntimeError("a page is not full")
        query = f"?after={page.get('next', '')}"
    return time.perf_counter() - began


def main() -> None:
    """Runs what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", choices=["stream", "list", []], default=[])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--chunks", type=int, default=20_000)
    parser.add_argument("--sdk", type=Path)
    given = parser.parse_args()
    wanted = given.what or ["stream", "list"]
    with tempfile.TemporaryDirectory() as folder:
        if "stream" in wanted:
            streams(folder, given.rounds, given.chunks, given.sdk)
        if "list" in wanted:
            pages(folder, given.rounds)


if __name__ == "__main__":
    main()
