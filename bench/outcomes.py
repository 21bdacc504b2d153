"""Plays the catalogue to released clients and says how each of them fares: makes `docs/clients.md`.

    python bench/outcomes.py [--only CLIENT] [--scenario GLOB] [--jobs N] [--keep FILE] > docs/clients.md

`bench/released.py` plays, and says what that needs; `bench/judged.py` judges.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

from judged import AT_ONCE, UNMET, Run, judge
from released import CANCELS, LIMIT, Client, Table, clients, options, play, table

from mockagent import __version__
from mockagent.scenario import library
from mockagent.scenario.catalogue import by_folder, title
from mockagent.scenario.reference import cell

SPEED = "5"
PARTING = ("eof", "sigterm")
"""Faults there only make what the steps do worse; whether they fire depends on how a client leaves."""
APART = ("Python SDK, WebSocket", "Python SDK, HTTP")
"""Clients without a column: the messages are those of stdio, and the npm SDK shows the transports."""
FOREIGN = {"stdio": ("websocket", "http"), "ws": ("stdio", "http"), "http": ("stdio", "websocket")}
"""What a client is connected over -> folders about other transports."""


def suits(client: Client, scenario: str) -> bool:
    """Whether a client can meet the trouble of a scenario."""
    if client.name.startswith("acpx") and scenario in CANCELS:
        return False
    return scenario.partition("/")[0] not in FOREIGN[client.over]


def outcome(client: Client, scenario: str, node: str) -> list[Any]:
    """Plays one scenario to one client; gives its outcome as JSON keeps it."""
    seen = play(client, scenario, SPEED, node)
    faulty = any(fault.at not in PARTING for fault in library.open_bundled(scenario).faults)
    return list(judge(Run(scenario, faulty, seen.events, seen.journal, seen.report, seen.status)))


# --- the page


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


def page(found: Table, about: list[Client], date: str) -> str:
    """The whole page."""
    versions = ", ".join(dict.fromkeys(f"{client.name.partition(',')[0]} {client.version}" for client in about))
    text = LEGEND.format(date=date, mock=__version__, versions=versions, once=AT_ONCE, limit=LIMIT)
    made = [text, *_sums(found, about)]
    names = {name for row in found.values() for name in row}
    for folder, inside in by_folder(names).items():
        made += [f"\n## {title(folder)}\n", *_grid(inside, found, about)]
    for client in about:
        made += _reasons(client, found.get(client.name, {}))
    return "\n".join(made).rstrip() + "\n"


def _mark(outcome: list[Any] | None) -> str:
    if outcome is None or outcome[0] == UNMET:
        return "·"
    return f"{'✓' if outcome[1] else '✗'} {outcome[0]}"


def _sums(found: Table, about: list[Client]) -> Iterator[str]:
    marks = [f"{sign} {word}" for word in ("handled", "error shown") for sign in "✓✗"] + ["✗ hangs", "✗ crashes"]
    yield "| client | scenarios met | " + " | ".join(marks) + " |"
    yield "| --- |" + " --- |" * (len(marks) + 1)
    for client in about:
        seen = [_mark(one) for one in found.get(client.name, {}).values() if one[0] != UNMET]
        counts = " | ".join(str(seen.count(mark)) for mark in marks)
        yield f"| {client.name} | {len(seen)} | {counts} |"


def _grid(names: list[str], found: Table, about: list[Client]) -> Iterator[str]:
    yield "| scenario | " + " | ".join(client.name for client in about) + " |"
    yield "| --- |" + " --- |" * len(about)
    for name in names:
        cells = [_mark(found.get(client.name, {}).get(name)) for client in about]
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
    given = options(__doc__, "*/*", jobs=2)
    about = [client for client in clients() if client.name not in APART]
    found = table(given, about, suits, lambda client, name: outcome(client, name, given.node))
    print(page(found, about, time.strftime("on %-d %B %Y", time.gmtime())), end="")


if __name__ == "__main__":
    main()
