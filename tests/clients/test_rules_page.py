"""The page of rules is what the rules say of themselves, and each says all that it has to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.rules_page import page
from mockagent.aap.rules import RULES as AAP
from mockagent.acp.rules import RULES as ACP
from mockagent.scenario.load import load_text
from mockagent.watch.rule import Rule
from mockagent.watch.watchers import WATCHERS

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "rules.md"
RULES = [*ACP, *AAP]


def test_the_page_of_rules_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m docs.rules_page > docs/rules.md"


@pytest.mark.parametrize("rule", RULES, ids=[rule.id for rule in RULES])
def test_a_rule_says_what_it_is_about(rule: Rule) -> None:
    assert rule.id.startswith(f"{rule.protocol.upper()}-")
    assert rule.sentence.endswith(".")
    assert rule.source.strip()
    assert list(rule.watches()), "a rule looks at something"


def test_the_expectations_in_the_docs_are_ones() -> None:
    text = (DOCS / "verdicts.md").read_text(encoding="utf-8")
    [example] = [block for block in text.split("```") if block.startswith("yaml")]
    assert [entry.what for entry in load_text(example.removeprefix("yaml")).expect] == list(WATCHERS)


def test_rules_that_the_docs_name_are_there() -> None:
    known = {rule.id for rule in RULES}
    for page_of in DOCS.glob("*.md"):
        named = set(re.findall(r"\b(?:ACP|AAP)-[A-Z]+-[0-9]{2}\b", page_of.read_text(encoding="utf-8")))
        assert named <= known, page_of.name
