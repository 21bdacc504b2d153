"""Parts of scenarios from values: the same checks as in a file, and mistakes told by their path."""

from __future__ import annotations

import pytest

from mockagent.control.spec import fault_of, scenario_of, scenario_of_text, steps_of, update_of
from mockagent.scenario import model
from mockagent.scenario.load import load_text
from mockagent.scenario.problems import ScenarioError


def test_a_fault_from_values_is_the_one_that_a_file_would_hold():
    made = fault_of({"at": "list", "error": "invalid_cursor", "when": {"times": 1}})
    filed = load_text("faults:\n  - {at: list, error: invalid_cursor, when: {times: 1}}\n").faults[0]
    assert (made.at, made.effects) == (filed.at, filed.effects)
    assert made.when is not None
    assert made.when.times == 1


def test_every_mistake_of_a_fault_is_told_by_its_path():
    with pytest.raises(ValueError, match="fault") as caught:
        fault_of({"at": "lst", "when": {"tims": 1}, "drop": True})
    lines = str(caught.value).splitlines()
    assert any(line.startswith("fault: at: `lst` names nothing") for line in lines)
    assert any("tims" in line for line in lines)


@pytest.mark.parametrize("value", [object(), float("nan"), {1, 2}])
def test_what_json_cannot_hold_is_refused(value):
    with pytest.raises(ValueError, match="only what JSON can hold"):
        fault_of({"at": "list", "result": value})


def test_a_part_may_use_what_something_else_has_saved():
    (step,) = steps_of([{"say": "${saved.anything}"}])
    assert step.dynamic


def test_an_update_is_a_title_and_what_follows():
    first, second = update_of({"title": None, "steps": [{"say": "Hello"}]})
    assert first.payload == model.InfoFields(title=None)
    assert second.verb == "say"


@pytest.mark.parametrize("values", [{}, {"titel": "x"}, {"steps": "say"}, {"steps": [{"sy": "x"}]}])
def test_an_update_with_mistakes_is_refused(values):
    with pytest.raises(ValueError, match="push: "):
        update_of(values)


def test_a_scenario_is_named_or_written_out(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("turns: [{steps: [{say: hi}]}]\n")
    assert scenario_of("hello").name == "hello"
    assert scenario_of(path).name == "mine"
    assert scenario_of({"name": "x"}).name == "x"
    assert scenario_of("{name: y}").name == "y"
    assert scenario_of("name: z\nseed: 3\n").seed == 3
    made = model.Scenario(name="made")
    assert scenario_of(made) is made


def test_text_that_was_sent_reads_no_files(tmp_path):
    with pytest.raises(ScenarioError, match="cannot include files"):
        scenario_of_text(f"include: {tmp_path}/secret.yaml\n", includes=False)
