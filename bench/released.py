"""The released clients, and how a scenario is played to one of them: what `clients.py` and `outcomes.py` share.

The programs in `bench/drivers` drive the SDKs, acpx is driven by its command line. This module starts them and the
mock, waits for the end, and gives back what was written down; what it means is for those who ask.

Needs the npm packages of `tests/interop` and a Node that is new enough for acpx (22.13), on the path or as `--node`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from judged import Line, from_acpx

from mockagent.scenario import library

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
MODULES = ROOT / "tests" / "interop" / "node_modules"
MOCK = [sys.executable, str(ROOT / "mockagent/__main__.py")]  # some clients trim the environment
LIMIT = 30.0
"""Seconds after which a client is killed."""
SETTLES = 0.1
"""Seconds that the last line of the journal may need."""
CANCELS = (
    "turns/cancel-as-end-turn", "turns/cancel-as-error", "turns/error-for-cancel", "turns/ignored-cancel",
    "stops/cancelled", "permissions/permission-open-at-cancel",
)  # fmt: skip
DENIES = ("permissions/permission-denied",)
PAIRS = ("ordering/slow-overlapping-replies", "sessions/two-loads-at-once")


class Case(NamedTuple):
    """One scenario for one client.

    Attributes:
        scenario: its name.
        speed: of the mock.
        folder: of this case alone; the client's home.
        node: the command.
    """

    scenario: str
    speed: str
    folder: Path
    node: str

    @property
    def plan(self) -> str:
        """What the drivers do beyond the usual; see there."""
        plans = {"cancel": CANCELS, "deny": DENIES, "pairs": PAIRS}
        return next((plan for plan, scenarios in plans.items() if self.scenario in scenarios), "plain")

    @property
    def mock(self) -> list[str]:
        """Options of `mockagent acp` and `serve`."""
        watched = ["--journal", str(self.folder / "journal"), "--report", str(self.folder / "report")]
        return [self.scenario, "--speed", self.speed, *watched]

    @property
    def env(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(self.folder), "NO_COLOR": "1"}


class Played(NamedTuple):
    """What was seen of a client.

    Attributes:
        events: what it said of itself, in order.
        status: of its process; None when it had to be killed.
        journal: of the mock.
        report: the mock's verdict; None when it wrote none.
    """

    events: list[Line]
    status: int | None
    journal: list[Line]
    report: Line | None


Ended = tuple[list[Line], int | None]


class Client(NamedTuple):
    """A client: its name, `stdio`, `ws` or `http`, the version, and how to play to it."""

    name: str
    over: str
    version: str
    run: Callable[[Case], Ended]


def play(client: Client, scenario: str, speed: str, node: str) -> Played:
    """Plays one scenario to one client."""
    with tempfile.TemporaryDirectory(prefix="released", ignore_cleanup_errors=True) as folder:
        case = Case(scenario, speed, Path(folder), node)
        events, status = client.run(case)
        time.sleep(SETTLES)
        return Played(events, status, lines(case.folder / "journal"), whole(case.folder / "report"))


# --- processes


def run(case: Case, argv: list[str]) -> tuple[int | None, list[Line], str]:
    """Runs a client to its end; gives its status (None when it was killed), its lines, and its complaint."""
    with (case.folder / "out").open("wb") as out, (case.folder / "err").open("wb") as err:
        client = subprocess.Popen(
            argv,
            env=case.env,
            cwd=case.folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        status: int | None = None
        with suppress(subprocess.TimeoutExpired):
            status = client.wait(LIMIT)
    with suppress(ProcessLookupError):  # its agent too, when it has left that behind
        os.killpg(client.pid, signal.SIGKILL)
    client.wait()
    complaint = (case.folder / "err").read_text(errors="replace").strip()[-300:]
    return status, lines(case.folder / "out"), complaint


@contextmanager
def server(case: Case) -> Iterator[str]:
    """A server for one scenario; gives its address."""
    argv = [*MOCK, "serve", *case.mock, "--port", "0"]
    mock = subprocess.Popen(argv, env=case.env, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        assert mock.stderr is not None
        line = next((line for line in mock.stderr if line.startswith("listening")), "")
        found = re.search(r"http://(\S+)", line)
        yield found[1] if found else "127.0.0.1:9"
    finally:
        mock.terminate()
        try:
            mock.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            mock.kill()
            mock.communicate()


def lines(file: Path) -> list[Line]:
    """The JSON objects in a file, one a line; what is none is left out."""
    found = []
    with suppress(OSError):
        for line in file.read_bytes().splitlines():
            with suppress(ValueError):
                value = json.loads(line)
                if isinstance(value, dict):
                    found.append(value)
    return found


def whole(file: Path) -> Line | None:
    """What a file of JSON holds; None if it holds none."""
    try:
        found: Line = json.loads(file.read_text())
    except (OSError, ValueError):
        return None
    return found


# --- the clients


def sdk(program: Callable[[Case], list[str]], over: str) -> Callable[[Case], Ended]:
    """One of the drivers over one transport."""

    def drive(case: Case) -> Ended:
        argv = [*program(case), case.plan, over]
        if over == "stdio":
            status, events, _ = run(case, [*argv, *MOCK, "acp", *case.mock])
        else:
            with server(case) as place:
                status, events, _ = run(case, [*argv, f"{over}://{place}/acp"])
        return events, status

    return drive


def python_driver(case: Case) -> list[str]:
    return [sys.executable, str(HERE / "drivers/python_sdk.py")]


def npm_driver(case: Case) -> list[str]:
    return [case.node, str(HERE / "drivers/npm_sdk.mjs"), str(MODULES)]


def acpx(case: Case) -> Ended:
    package = json.loads((MODULES / "acpx/package.json").read_text())
    agent = " ".join([*MOCK, "acp", *case.mock])
    argv = [case.node, str(MODULES / "acpx" / package["bin"]["acpx"]), "--cwd", str(case.folder), "--agent", agent]
    pages = case.scenario.startswith("lists/") and "title" not in case.scenario
    task = ["sessions", "list"] if pages else ["exec", "hi"]
    policy = "--deny-all" if case.plan == "deny" else "--approve-all"
    status, printed, complaint = run(case, [*argv, "--format", "json", policy, "--timeout", "6", *task])
    return from_acpx(printed, status, complaint, time.time()), status


def clients() -> list[Client]:
    """All of them."""

    def npm(name: str) -> str:
        found: str = json.loads((MODULES / name / "package.json").read_text())["version"]
        return found

    transports = {"stdio": "stdio", "ws": "WebSocket", "http": "HTTP"}
    sdks = (
        ("Python SDK", version("agent-client-protocol"), python_driver),
        ("npm SDK", npm("@agentclientprotocol/sdk"), npm_driver),
    )
    found = [
        Client(f"{name}, {shown}", over, about, sdk(driver, over))
        for name, about, driver in sdks
        for over, shown in transports.items()
    ]
    return [*found, Client("acpx, stdio", "stdio", npm("acpx"), acpx)]


# --- playing many

Table = dict[str, dict[str, Any]]
"""client -> scenario -> what was found, as JSON keeps it."""


def options(about: str | None, scenario: str, jobs: int) -> argparse.Namespace:
    """The command line of a script that plays scenarios and makes a page of it.

    Args:
        about: the script's docstring.
        scenario: the glob to go by when none is given.
        jobs: how many clients run at a time when nothing else is said.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="part of a client's name")
    parser.add_argument("--scenario", default=scenario, help=f"a glob over names (default: {scenario})")
    parser.add_argument("--node", default=shutil.which("node") or "node")
    parser.add_argument("--jobs", type=int, default=jobs, help="clients at a time")
    parser.add_argument("--keep", type=Path, help="a file of what was found: adds to it, plays only what it lacks")
    parser.add_argument("--page", action="store_true", help="play nothing, make the page of what was kept")
    return parser.parse_args()


def table(
    given: argparse.Namespace,
    about: Sequence[Client],
    suits: Callable[[Client, str], bool],
    find: Callable[[Client, str], Any],
) -> Table:
    """Plays what the command line asks for and has not been kept.

    Args:
        given: the command line.
        about: the clients.
        suits: whether a scenario is for a client.
        find: plays it; None where there is nothing to keep.
    """
    found: Table = {}
    if given.keep and given.keep.exists():
        found = json.loads(given.keep.read_text())
    work = [
        (client, name)
        for name in library.names()
        if fnmatch(name, given.scenario) and not given.page
        for client in about
        if given.only in client.name and suits(client, name) and name not in found.get(client.name, {})
    ]
    with ThreadPoolExecutor(given.jobs) as pool:
        playing = {pool.submit(find, client, name): (client.name, name) for client, name in work}
        for done in as_completed(playing):
            client_name, name = playing[done]
            print(client_name, name, file=sys.stderr, flush=True)
            if (one := done.result()) is None:
                continue
            found.setdefault(client_name, {})[name] = one
            if given.keep:
                given.keep.write_text(json.dumps(found, indent=1))
    return found
