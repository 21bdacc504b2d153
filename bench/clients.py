"""Plays every bundled scenario to released clients, and makes `docs/client-verdicts.md` of the verdicts on them.

    python bench/clients.py [--only CLIENT] [--scenario GLOB] [--jobs N] [--keep FILE] > docs/client-verdicts.md

`bench/released.py` plays, and says what that needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from released import Client, Table, clients, options, play, table

from mockagent.scenario import library

Verdict = dict[str, Any]

SPEED = "0"
CARRIED = ("websocket/", "http/", "requests/", "lists/")
"""Folders that are worth playing over the network, which carries the same messages; and so are the tours, in none."""

HEAD = """\
# Verdicts on released clients

<!-- Made by `python bench/clients.py`, which plays every bundled scenario to them. -->

Clients made with the official SDKs, and acpx, against every bundled scenario; over the network, which carries the same
messages, against those about the network, lists and requests, and the tours. The programs around the SDKs
(`bench/drivers`) do what a right client does as far as the SDK lets them: so what is broken here is the SDK's doing.
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


def page(found: Table, about: list[Client]) -> str:
    """The whole page."""
    names = {"Python SDK": "agent-client-protocol {} (PyPI)", "npm SDK": "@agentclientprotocol/sdk {} (npm)"}
    versions = dict.fromkeys(
        names.get(maker := client.name.partition(",")[0], f"{maker} {{}} (npm)").format(client.version)
        for client in about
    )
    made = [HEAD, f"Versions: {', '.join(versions)}."]
    for client in about:
        if verdicts := found.get(client.name):
            made += row(client.name, {name: verdicts[name] for name in library.names() if name in verdicts})
    return "\n".join(made) + "\n"


def main() -> None:
    given = options(__doc__, "*", jobs=4)
    about = clients()

    def suits(client: Client, name: str) -> bool:
        asked = name == given.scenario
        return asked or client.over == "stdio" or "/" not in name or name.startswith(CARRIED)

    found = table(given, about, suits, lambda client, name: play(client, name, SPEED, given.node).report)
    print(page(found, about), end="")


if __name__ == "__main__":
    main()
