"""Plays the catalogue to released clients and says how each of them fares: makes `docs/clients.md`.

    python bench/outcomes.py [--only CLIENT] [--scenario GLOB] [--jobs N] [--keep FILE] > docs/clients.md

Needs the npm packages of `tests/interop` and a Node that is new enough for acpx (22.13), on the path or as `--node`.
The programs in `bench/drivers` drive the SDKs, acpx is driven by its command line; `bench/judged.py` judges. With
`--keep`, outcomes are kept in a file and only what is missing there is played.
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
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from judged import AT_ONCE, UNMET, Line, Outcome, Run, from_acpx, judge

from mockagent import __version__
from mockagent.scenario import library
from mockagent.scenario.catalogue import by_folder, title
from mockagent.scenario.reference import cell

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
MODULES = ROOT / "tests" / "interop" / "node_modules"
MOCK = [sys.executable, str(ROOT / "mockagent/__main__.py")]  # some clients trim the environment
SPEED = "5"
LIMIT = 30.0
"""Seconds after which a client is killed."""
SETTLES = 0.1
PARTING = ("eof", "sigterm")
"""Faults there only make what the steps do worse; whether they fire depends on how a client leaves."""
CANCELS = (
    "turns/cancel-as-end-turn", "turns/cancel-as-error", "turns/error-for-cancel", "turns/ignored-cancel",
    "stops/cancelled", "permissions/permission-open-at-cancel",
)  # fmt: skip
DENIES = ("permissions/permission-denied",)
PAIRS = ("ordering/slow-overlapping-replies", "sessions/two-loads-at-once")


class Case(NamedTuple):
    """One scenario for one client, with a folder of its own."""

    scenario: str
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
        return [self.scenario, "--speed", SPEED, *watched]

    @property
    def env(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(self.folder), "NO_COLOR": "1"}


Ended = tuple[list[Line], int | None]
Play = Callable[[Case], Ended]


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


def sdk(program: Callable[[Case], list[str]], over: str) -> Play:
    """One of the drivers over one transport."""

    def play(case: Case) -> Ended:
        argv = [*program(case), case.plan, over]
        if over == "stdio":
            status, events, _ = run(case, [*argv, *MOCK, "acp", *case.mock])
        else:
            with server(case) as place:
                status, events, _ = run(case, [*argv, f"{over}://{place}/acp"])
        return events, status

    return play


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


class Client(NamedTuple):
    """A client: what it is, the folders and scenarios that are not for it, and how to play to it."""

    name: str
    version: str
    without: tuple[str, ...]
    play: Play


def clients() -> list[Client]:
    """All of them."""

    def npm(name: str) -> str:
        found: str = json.loads((MODULES / name / "package.json").read_text())["version"]
        return found

    js, py = npm("@agentclientprotocol/sdk"), version("agent-client-protocol")
    return [
        Client("Python SDK, stdio", py, ("websocket", "http"), sdk(python_driver, "stdio")),
        Client("npm SDK, stdio", js, ("websocket", "http"), sdk(npm_driver, "stdio")),
        Client("npm SDK, WebSocket", js, ("stdio", "http"), sdk(npm_driver, "ws")),
        Client("npm SDK, HTTP", js, ("stdio", "websocket"), sdk(npm_driver, "http")),
        Client("acpx, stdio", npm("acpx"), ("websocket", "http", *CANCELS), acpx),
    ]


def outcome(client: Client, scenario: str, node: str) -> Outcome:
    """Plays one scenario to one client."""
    with tempfile.TemporaryDirectory(prefix="outcome", ignore_cleanup_errors=True) as folder:
        case = Case(scenario, Path(folder), node)
        events, status = client.play(case)
        time.sleep(SETTLES)  # the last line of the journal
        verdict = next(iter(whole_json(case.folder / "report")), None)
        faulty = any(fault.at not in PARTING for fault in library.open_bundled(scenario).faults)
        return judge(Run(scenario, faulty, events, lines(case.folder / "journal"), verdict, status))


def whole_json(file: Path) -> list[Any]:
    """What a file of JSON holds, in a list; an empty one if it holds none."""
    try:
        return [json.loads(file.read_text())]
    except (OSError, ValueError):
        return []


# --- the page


Table = dict[str, dict[str, list[Any]]]
"""client -> scenario -> an outcome, as JSON keeps it."""

LEGEND = """\
# Clients

<!-- Made by `bench/outcomes.py`; play it again with a new client and see. -->

How released clients fare in the [catalogue](catalogue.md). Made {date} with mockagent {mock} on Linux: {versions}.

Each scenario was played once to each client, with waits at a fifth. A small program drives each SDK and does what a
right client does as far as the SDK lets it: it greets, makes a session (and logs in when told to), plays two turns,
lists, loads, plays one more turn, closes and resumes. It waits two seconds for each answer, then cancels and goes on.
acpx is run as it is: `exec hi`, or `sessions list` where the trouble is in the list, with `--timeout 6` and
`--approve-all`, or `--deny-all` where the user denies. Scenarios in which the user cancels are not for `exec`.

| outcome | how it is decided |
| --- | --- |
| handled | every call that was answered was settled, without an error; it went on after those that never were |
| error shown | a call ended with an error, the client refused to go on, or its exit status was not 0 |
| hangs | a call stayed open though an answer had come, readable or not, or though the connection was gone |
| crashes | the process ended by itself before it had done its work, without saying what was wrong |
| · | the trouble never came about, as this client does not do what leads to it, or not over this transport |

A ✓ before it says that this is what a right client does, as far as it can be seen from outside; a ✗ that it is not:

- an error was shown although the agent had answered the call with an undamaged result;
- text that left the mock undamaged never reached the program, or out of order, or after its turn had settled;
- the client broke a [rule](rules.md) of the spec, or missed what the scenario expects of it;
- it hung or crashed. (A call may stay open for {once:g} s, and the whole may take {limit:g} s.)

So ✓ *error shown* is good where the agent sends an error or breaks off, and ✗ *handled* is a client that survived and
did wrong in silence. What a user would see on a screen (is it shown as history, is a title shortened) cannot be judged
here, and a ✓ says nothing of it.
"""


def page(table: Table, about: list[Client], date: str) -> str:
    """The whole page."""
    versions = ", ".join(dict.fromkeys(f"{client.name.partition(',')[0]} {client.version}" for client in about))
    text = LEGEND.format(date=date, mock=__version__, versions=versions, once=AT_ONCE, limit=LIMIT)
    made = [text, *_sums(table, about)]
    names = {name for row in table.values() for name in row}
    for folder, inside in by_folder(names).items():
        made += [f"\n## {title(folder)}\n", *_grid(inside, table, about)]
    for client in about:
        made += _reasons(client, table.get(client.name, {}))
    return "\n".join(made).rstrip() + "\n"


def _mark(found: list[Any] | None) -> str:
    if found is None or found[0] == UNMET:
        return "·"
    return f"{'✓' if found[1] else '✗'} {found[0]}"


def _sums(table: Table, about: list[Client]) -> Iterator[str]:
    marks = [f"{sign} {word}" for word in ("handled", "error shown") for sign in "✓✗"] + ["✗ hangs", "✗ crashes"]
    yield "| client | scenarios met | " + " | ".join(marks) + " |"
    yield "| --- |" + " --- |" * (len(marks) + 1)
    for client in about:
        seen = [_mark(found) for found in table.get(client.name, {}).values() if found[0] != UNMET]
        counts = " | ".join(str(seen.count(mark)) for mark in marks)
        yield f"| {client.name} | {len(seen)} | {counts} |"


def _grid(names: list[str], table: Table, about: list[Client]) -> Iterator[str]:
    yield "| scenario | " + " | ".join(client.name for client in about) + " |"
    yield "| --- |" + " --- |" * len(about)
    for name in names:
        cells = [_mark(table.get(client.name, {}).get(name)) for client in about]
        yield f"| [{name.rpartition('/')[2]}](../scenarios/{name}.yaml) | " + " | ".join(cells) + " |"


def _reasons(client: Client, row: dict[str, list[Any]]) -> Iterator[str]:
    wrong = {name: found for name, found in sorted(row.items()) if not found[1]}
    yield f"\n## What was wrong: {client.name} {client.version}\n"
    if not wrong:
        yield "Nothing."
        return
    yield from ("| scenario | outcome | what was wrong, first |", "| --- | --- | --- |")
    for name, (word, _, why) in wrong.items():
        yield f"| {name} | {word} | {cell(_tidy(why))} |"


def _tidy(why: str) -> str:
    plain = re.sub(r"(/[\w.+-]+){3,}", "PATH", " ".join(why.split()))
    return plain if len(plain) <= 200 else plain[:200] + "..."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="part of a client's name")
    parser.add_argument("--scenario", default="*/*", help="a glob over names (default: all in folders)")
    parser.add_argument("--node", default=shutil.which("node") or "node")
    parser.add_argument("--jobs", type=int, default=2, help="clients at a time")
    parser.add_argument("--keep", type=Path, help="a file of outcomes to add to")
    given = parser.parse_args()
    table: Table = {}
    if given.keep and given.keep.exists():
        table = json.loads(given.keep.read_text())
    about = clients()
    work = [
        (client, name)
        for name in library.names()
        if fnmatch(name, given.scenario)
        for client in about
        if (given.only is None or given.only in client.name)
        and not {name, name.partition("/")[0]}.intersection(client.without)
        and name not in table.get(client.name, {})
    ]

    with ThreadPoolExecutor(given.jobs) as pool:
        played = {pool.submit(outcome, client, name, given.node): (client.name, name) for client, name in work}
        for done in as_completed(played):
            client_name, name = played[done]
            table.setdefault(client_name, {})[name] = list(done.result())
            print(client_name, name, *done.result(), file=sys.stderr, flush=True)
            if given.keep:
                given.keep.write_text(json.dumps(table, indent=1))
    print(page(table, about, time.strftime("on %-d %B %Y", time.gmtime())), end="")


if __name__ == "__main__":
    main()
