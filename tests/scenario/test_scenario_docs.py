"""The tables document themselves truthfully."""

from __future__ import annotations

from pathlib import Path

import pytest

from mockagent.scenario import library
from mockagent.scenario.catalogue import by_folder, catalogue
from mockagent.scenario.conditions import ANSWER_KEYS, KEYS
from mockagent.scenario.effects import EFFECTS
from mockagent.scenario.load import load_text
from mockagent.scenario.model import Fault, When
from mockagent.scenario.reference import reference
from mockagent.scenario.steps import SIBLINGS
from mockagent.scenario.verbs import VERBS

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "scenario-reference.md"


def test_the_reference_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference(), (
        "python -m mockagent.scenario.reference > docs/scenario-reference.md"
    )


def test_the_catalogue_is_up_to_date() -> None:
    assert (DOCS / "catalogue.md").read_text(encoding="utf-8") == catalogue(), (
        "python -m mockagent.scenario.catalogue > docs/catalogue.md"
    )


def test_the_catalogue_has_every_scenario_once() -> None:
    page = catalogue()
    for name in library.names():
        assert page.count(f"](../scenarios/{name}.yaml) |") == 1, name


def test_scenarios_stand_by_folder_the_top_first_and_unknown_folders_last() -> None:
    assert list(by_folder(["zoo/b", "lists/x", "demo", "zoo/a", "set-up/y"]).items()) == [
        ("", ["demo"]),
        ("set-up", ["set-up/y"]),
        ("lists", ["lists/x"]),
        ("zoo", ["zoo/a", "zoo/b"]),
    ]


@pytest.mark.parametrize("verb", VERBS)
def test_the_example_of_a_verb_is_a_valid_step(verb: str) -> None:
    (step,) = load_text(f"legality: unspecified\nturns:\n- steps:\n  - {VERBS[verb].example}\n").turns[0].steps
    assert step.verb == verb


@pytest.mark.parametrize("effect", EFFECTS)
def test_the_example_of_an_effect_is_a_valid_fault(effect: str) -> None:
    (fault,) = load_text(f"legality: violation\nfaults:\n- {EFFECTS[effect].example}\n").faults
    assert isinstance(fault, Fault)
    assert effect in fault.effects


@pytest.mark.parametrize("field", [*KEYS, *ANSWER_KEYS], ids=lambda field: field.key)
def test_the_example_of_a_condition_is_valid_in_then(field: object) -> None:
    key, example = field.key, field.example  # type: ignore[attr-defined]
    text = f"turns:\n- steps:\n  - ask: {{title: x}}\n    then:\n    - when: {{{key}: {example}}}\n"
    (branch,) = load_text(text).turns[0].steps[0].then or ()
    assert isinstance(branch.when, When)
    assert getattr(branch.when, key) is not None


def test_every_key_of_a_condition_is_in_the_model() -> None:
    assert {field.key for field in (*KEYS, *ANSWER_KEYS)} == set(When.__struct_fields__) - {"place"}


def test_every_verb_may_wait_and_have_a_condition() -> None:
    for verb in VERBS.values():
        assert {"after", "when", "save"} <= set(verb.siblings) <= set(SIBLINGS), verb.name


def test_contradictions_name_effects() -> None:
    for effect in EFFECTS.values():
        assert set(effect.against) <= set(EFFECTS)
        assert effect.name not in effect.against
