"""Plays every bundled scenario to released clients, and makes `docs/client-verdicts.md` of the verdicts on them.

    python bench/clients.py [--only CLIENT] [--scenario NAME] [--json FILE] > docs/client-verdicts.md

Needs the npm packages of `tests/interop` and a Node that is new enough for acpx (22.13), on the path or as `--node`.
The small programs in `bench/verdicts` drive the SDKs; acpx is driven by its command line.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from mockagent.scenario import library

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
MODULES = ROOT / "tests" / "interop" / "node_modules"
MOCK = [sys.executable, str(ROOT / "mockagent/__main__.py")]  # some clients trim the environment
LIMIT = 40
"""Seconds for one scenario."""

Verdict = dict[str, Any]

HEAD = """\
# Verdicts on released clients

<!-- Made by `python bench/clients.py`, which plays every bundled scenario to them. -->

Clients made with the official SDKs, and acpx, against every bundled scenario; over the network, which carries the same
messages, against those about the network, lists and requests, and the tours. The programs around the SDKs
(`bench/verdicts`) do what a right client does as far as the SDK lets them: so what is broken here is the SDK's doing.
Every breach was looked at by hand, with the page of the spec beside it; what was found is said below it.
"""

CHECKED = {
    ("Python SDK", "ACP-HTTP-04"): (
        "True by the proposal: it asks for `Acp-Session-Id` on every POST about a session, names permission answers, "
        "and shows `session/load` with it. The SDK sends the header with prompts and the like, and leaves it out with "
        "`session/load`, `session/resume` and answers. The proposal is a draft; mockagent finds the session in the "
        "body."
    ),
}
"""What a look at each breach has shown, by client and rule."""


class Bench:
    """Where clients are run."""

    def __init__(self, node: str) -> None:
        self.node = node
        self.folder = Path(tempfile.mkdtemp(prefix="verdicts"))
        self.env = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(self.folder), "NO_COLOR": "1"}

    def run(self, argv: list[str]) -> None:
        """Runs a client to its end, however that is."""
        nothing = subprocess.DEVNULL
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(
                argv, env=self.env, cwd=self.folder, stdin=nothing, stdout=nothing, stderr=nothing, timeout=LIMIT,
                check=False,
            )  # fmt: skip

    @property
    def report(self) -> Path:
        """Where the mock writes its verdict."""
        return self.folder / "report.json"

    def agent(self, scenario: str) -> list[str]:
        """The command of an agent over stdio."""
        return [*MOCK, "acp", scenario, "--speed", "0", "--report", str(self.report)]

    @contextmanager
    def server(self, scenario: str) -> Iterator[str]:
        """A server for one scenario; gives its address."""
        argv = [*MOCK, "serve", scenario, "--port", "0", "--speed", "0", "--report", str(self.report)]
        mock = subprocess.Popen(argv, env=self.env, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        try:
            assert mock.stderr is not None
            line = next((line for line in mock.stderr if line.startswith("listening")), "")
            found = re.search(r"http://(\S+)", line)
            yield found[1] if found else "127.0.0.1:9"
        finally:
            mock.terminate()
            mock.communicate()


def python_stdio(bench: Bench, scenario: str) -> None:
    bench.run([sys.executable, str(HERE / "verdicts/python_sdk.py"), "stdio", *bench.agent(scenario)])


def python_ws(bench: Bench, scenario: str) -> None:
    with bench.server(scenario) as place:
        bench.run([sys.executable, str(HERE / "verdicts/python_sdk.py"), "ws", f"ws://{place}/acp"])


def python_http(bench: Bench, scenario: str) -> None:
    with bench.server(scenario) as place:
        bench.run([sys.executable, str(HERE / "verdicts/python_sdk.py"), "http", f"http://{place}/acp"])


def npm(over: str, scheme: str) -> Callable[[Bench, str], None]:
    def play(bench: Bench, scenario: str) -> None:
        program = [bench.node, str(HERE / "verdicts/npm_sdk.mjs"), str(MODULES), over]
        if over == "stdio":
            bench.run([*program, *bench.agent(scenario)])
            return
        with bench.server(scenario) as place:
            bench.run([*program, f"{scheme}://{place}/acp"])

    return play


def acpx(bench: Bench, scenario: str) -> None:
    package = json.loads((MODULES / "acpx/package.json").read_text())
    program = [bench.node, str(MODULES / "acpx" / package["bin"]["acpx"]), "--cwd", str(bench.folder)]
    agent = " ".join(bench.agent(scenario))
    bench.run([*program, "--agent", agent, "--approve-all", "--timeout", "4", "exec", "hi"])


CLIENTS: dict[str, Callable[[Bench, str], None]] = {
    "Python SDK, stdio": python_stdio,
    "Python SDK, WebSocket": python_ws,
    "Python SDK, HTTP": python_http,
    "npm SDK, stdio": npm("stdio", ""),
    "npm SDK, WebSocket": npm("ws", "ws"),
    "npm SDK, HTTP": npm("http", "http"),
    "acpx, stdio": acpx,
}


def verdict(bench: Bench, play: Callable[[Bench, str], None], scenario: str) -> Verdict | None:
    """What the mock says of a client; None when it has said nothing."""
    bench.report.unlink(missing_ok=True)
    play(bench, scenario)
    try:
        found: Verdict = json.loads(bench.report.read_text())
    except (OSError, ValueError):
        return None
    return found


def row(client: str, verdicts: dict[str, Verdict]) -> Iterator[str]:
    """The lines about one client."""
    met: set[str] = set()
    broken: dict[str, list[tuple[str, str]]] = {}
    for scenario, found in verdicts.items():
        met |= {rule["id"] for rule in found["rules"] if rule["met"]}
        for breach in found["breaches"]:
            broken.setdefault(breach["rule"], []).append((scenario, breach["why"]))
    yield f"\n## {client}\n"
    yield f"{len(verdicts)} scenarios; {len(met - broken.keys())} rules kept, {len(broken)} broken."
    if broken:
        yield "\n| rule | in scenarios | what it did, first |\n| --- | --- | --- |"
    for rule, places in sorted(broken.items()):
        scenarios = sorted({scenario for scenario, _ in places})
        few = ", ".join(f"`{name}`" for name in scenarios[:3]) + (" ..." if len(scenarios) > 3 else "")
        why = places[0][1].replace("|", "\\|")
        yield f"| [{rule}](rules.md) | {len(scenarios)}: {few} | {why} |"
    for rule in sorted(broken):
        notes = [note for (name, about), note in CHECKED.items() if about == rule and client.startswith(name)]
        yield f"\n{rule}: {notes[0] if notes else 'not yet looked at.'}"


def _versions() -> str:
    """Of the clients."""
    from importlib.metadata import version

    found = [f"agent-client-protocol {version('agent-client-protocol')} (PyPI)"]
    for name in ("@agentclientprotocol/sdk", "acpx"):
        found.append(f"{name} {json.loads((MODULES / name / 'package.json').read_text())['version']} (npm)")
    return ", ".join(found)


def _worth(client: str, names: list[str]) -> list[str]:
    """The scenarios that are played to a client: over the network, which carries the same messages, those about the
    network and the tours."""
    if "stdio" in client or len(names) == 1:
        return names
    return [
        name for name in names if "/" not in name or name.startswith(("websocket/", "http/", "requests/", "lists/"))
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only")
    parser.add_argument("--scenario")
    parser.add_argument("--jobs", type=int, default=4, help="clients at a time")
    parser.add_argument("--node", default=shutil.which("node") or "node")
    parser.add_argument("--json", type=Path, help="keep the breaches in this file")
    parser.add_argument("--kept", type=Path, help="make the page from such a file, and play nothing")
    given = parser.parse_args()
    if given.kept:
        _print(json.loads(given.kept.read_text()))
        return
    names = [given.scenario] if given.scenario else library.names()
    kept: dict[str, dict[str, Verdict]] = {}

    def one(job: tuple[str, str]) -> Verdict | None:
        client, name = job
        print(client, name, file=sys.stderr)
        return verdict(Bench(given.node), CLIENTS[client], name)

    jobs = [(client, name) for client in CLIENTS for name in _worth(client, names) if (given.only or "") in client]
    with ThreadPoolExecutor(given.jobs) as pool:
        for (client, name), found in zip(jobs, pool.map(one, jobs), strict=True):
            if found is not None:
                kept.setdefault(client, {})[name] = found
    if given.json:
        given.json.write_text(json.dumps(kept, indent=1))
    _print(kept)


def _print(kept: dict[str, dict[str, Verdict]]) -> None:
    print(HEAD)
    print(f"Versions: {_versions()}.")
    for client, verdicts in kept.items():
        print("\n".join(row(client, verdicts)))


if __name__ == "__main__":
    main()
