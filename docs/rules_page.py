"""Makes `docs/rules.md` from the rulebooks: `python -m docs.rules_page > docs/rules.md`.

Knows the rules as they register themselves, and nothing else: so the page cannot say what the code does not do.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from mockagent.aap.rules import RULES as AAP
from mockagent.acp.rules import RULES as ACP
from mockagent.watch.rule import Rule

HEAD = """\
# Rules about clients

<!-- Made from the rulebooks by `python -m docs.rules_page`; a test says when it is out of date. -->

While it plays, mockagent judges the client by the rules on this page. A rule is here only if the spec says so, if the
messages alone decide it, and if it is true under every interleaving of messages in flight. What left the mock damaged
on purpose is not held against a client. What a verdict means and how to read one is said in [verdicts](verdicts.md).

`MUST` and `SHOULD` are those of the spec; where its page only states what is so, that counts as MUST. *Decided by*
lists what a rule looks at: `→` is sent by the client, `←` by the mock, `!` is an event of the connection, `?` is input
that is no message.
"""

PLACES = {
    "protocol/": "https://agentclientprotocol.com/",
    "rfds/": "https://agentclientprotocol.com/",
    "JSON-RPC": "https://www.jsonrpc.org/specification",
    "W3C": "https://www.w3.org/TR/trace-context/",
}

SECTIONS = {
    "The beginning of a connection": ("ACP-INIT", "ACP-AUTH"),
    "What the agent advertises": ("ACP-CAP",),
    "Sessions and methods": ("ACP-SESSION", "ACP-METHOD"),
    "Params of methods": ("ACP-PARAMS", "ACP-MCP", "ACP-PATH", "ACP-META"),
    "Content of prompts": ("ACP-CONTENT",),
    "Paging": ("ACP-CURSOR",),
    "Modes and options": ("ACP-MODE", "ACP-CONFIG"),
    "Answers to the agent": (
        "ACP-ANSWER", "ACP-CLIENT", "ACP-RESULT", "ACP-CANCEL", "ACP-PERMISSION", "ACP-FILE", "ACP-TERMINAL",
        "ACP-ELICIT",
    ),
    "Transports": ("ACP-FRAME", "ACP-WS", "ACP-HTTP"),
    "Requests of AAP": ("AAP-AUTH", "AAP-BODY", "AAP-STREAM", "AAP-HISTORY", "AAP-CURSOR"),
    "Agents, options and tools of AAP": ("AAP-AGENT", "AAP-OPTION", "AAP-SECRET", "AAP-TOOL"),
    "Content and messages of AAP": ("AAP-IMAGE", "AAP-BLOCK", "AAP-MESSAGE"),
    "Tool calls of AAP": ("AAP-TOOLS",),
}  # fmt: skip
"""Headings, with the subjects of the rules below each."""

SIGNS = {"got": "→", "sent": "←", "noted": "!", "unreadable": "?"}


def page() -> str:
    """The page as text."""
    return "\n".join([HEAD, *_counts(), *_sections([*ACP, *AAP])]).rstrip() + "\n"


def _counts() -> Iterator[str]:
    for name, rules in (("ACP v1", ACP), ("AAP v3", AAP)):
        must = sum(rule.level == "MUST" for rule in rules)
        yield f"{name}: {len(rules)} rules, {must} of them MUST.  "


def _sections(rules: Iterable[Rule]) -> Iterator[str]:
    left = {rule.id: rule for rule in rules}
    for heading, subjects in SECTIONS.items():
        yield f"\n## {heading}"
        for subject in subjects:
            for id in sorted(id for id in left if id.rpartition("-")[0] == subject):
                yield from _entry(left.pop(id))
    assert not left, f"no section has {', '.join(left)}"


def _entry(rule: Rule) -> Iterator[str]:
    yield f"\n### {rule.id} ({rule.level})\n"
    yield rule.sentence
    if note := _note(rule):
        yield f"\n{note}"
    over = f" Only over {', '.join(_transports(rule))}." if rule.transports else ""
    yield f"\nDecided by {', '.join(_frames(rule))}.{over}  "
    yield f"Spec: {', '.join(map(_link, rule.source.split('; ')))}"


def _note(rule: Rule) -> str:
    """What the class says of itself, where it stands for one rule only."""
    own = rule.check.__dict__.get("__doc__")
    if not own or rule.on or rule.about is not None:
        return ""
    return " ".join(own.split())


def _transports(rule: Rule) -> list[str]:
    names = {"ws": "WebSocket", "http": "HTTP"}
    return [names.get(name, name) for name in rule.transports if name != "memory"]


def _frames(rule: Rule) -> list[str]:
    """Each kind once, what the mock sends first."""
    found = sorted({(what != "sent", SIGNS[what], kind) for what, kind, _ in rule.watches() if kind != "raw"})
    return [f"`{sign} {kind}`" for _, sign, kind in found]


def _link(source: str) -> str:
    for start, place in PLACES.items():
        if source.startswith(start):
            return f"[{source}]({place + source if place.endswith('.com/') else place})"
    return f"[{source}](https://agentapplicationprotocol.com/{source})"


if __name__ == "__main__":
    sys.stdout.write(page())
