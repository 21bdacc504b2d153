"""What a file turns into: the values that the players rely on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from mockagent.scenario import model
from mockagent.scenario.load import ScenarioError, load, load_text

GOOD = Path(__file__).parent / "good"


def steps(text: str) -> tuple[model.Step, ...]:
    return load_text(f"turns: [{{steps: {text}}}]\nlegality: unspecified").turns[0].steps


def payload(text: str) -> Any:
    return steps(f"[{text}]")[0].payload


def problems(text: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        load_text(text)
    return [str(problem) for problem in caught.value.problems]


def test_an_empty_mapping_is_a_scenario_named_after_its_file() -> None:
    assert load_text("{}", "dir/some.yaml") == model.Scenario(name="some", file="dir/some.yaml")


def test_a_name_in_the_file_wins() -> None:
    assert load_text("name: other", "some.yaml").name == "other"


@pytest.mark.parametrize(
    ("written", "built"),
    [
        ("say: Hello", ("Hello",)),
        ("say: 18", ("18",)),
        ("say: 1.50", ("1.50",)),
        ("say: true", ("true",)),
        ("say: yes", ("yes",)),
        ("say: [a, {text: b}]", ("a", {"text": "b"})),
        ("say: []", ()),
        ("stop: end_turn", "end_turn"),
        ("wait: 2s", 2_000_000),
        ("wait: {uniform: [1ms, 2ms]}", model.Uniform(1_000, 2_000)),
        ("wait: {lognormal: {median: 80ms, sigma: 0.4}}", model.Lognormal(80_000, 0.4)),
        ("hang: true", True),
        ("fail: busy", "busy"),
        ("fail: {code: -1, message: m}", {"code": -1, "message": "m"}),
        ("fail: {code: -32603}", {"code": -32603, "message": "Internal error"}),
        ("fail: {code: 7, data: null}", {"code": 7, "message": "Error", "data": None}),
        ("mode: code", "code"),
        ("option: {id: a, value: 1}", {"id": "a", "value": 1}),
        ("plan: [x]", ({"status": "pending", "priority": "medium", "content": "x"},)),
        ("usage: {used: 1, size: 2}", {"used": 1, "size": 2}),
        ("commands: [{name: a}]", ({"description": "", "name": "a"},)),
        ("notice: N", {"severity": "info", "title": "N"}),
        ("info: {title: null}", model.InfoFields(title=None)),
        ("read: a.py", model.Read(path="a.py")),
        ("terminal: ls", model.Terminal(command="ls")),
        ("request: _x", model.Call(method="_x")),
        ("request: {method: _x, params: null}", model.Call(method="_x", params=None)),
        ("wait_for: session/cancel", model.WaitFor(method="session/cancel")),
        ("tool_update: {id: a, content: null}", model.ToolFields(id="a", fields={"content": None})),
        ("tool: {output: 18}", model.Tool(output="18")),
        ("tool: {output: [18]}", model.Tool(output=[18])),
        ("tool: {ask: true, takes: 1s}", model.Tool(ask=True, takes=1_000_000)),
        ("tool: {ask: {content: x}}", model.Tool(ask=model.Ask(content=("x",)))),
        ("tool: {locations: a.py}", model.Tool(locations=({"path": "a.py"},))),
        ("disconnect: reset", "reset"),
        ("disconnect: {code: 4001}", {"code": 4001, "reason": ""}),
        ("exit: 3", {"code": 3}),
        ("exit: {signal: SIGKILL}", {"signal": 9}),
        ("stall: {write: forever}", {"write": "forever"}),
        ("stderr: x", {"text": "x"}),
        ("send: {a: 1}", {"a": 1}),
        ("send: text", "text"),
        ("update: {sessionUpdate: plan, entries: []}", {"sessionUpdate": "plan", "entries": []}),
    ],
)
def test_a_payload_is_built_in_one_form(written: str, built: Any) -> None:
    assert payload(f"{{{written}}}") == built


def test_together_holds_lists_of_steps() -> None:
    made = payload("{together: [{say: a}, [{say: b}, {say: c}], []]}")
    assert [[step.payload for step in branch] for branch in made.branches] == [[("a",)], [("b",), ("c",)], []]


def test_a_permission_option_takes_its_kind_and_name_from_its_id() -> None:
    made = payload("{ask: {title: x, options: [{id: allow_once}, {id: n, kind: reject_once, name: No}]}}")
    assert made.options == (
        {"id": "allow_once", "kind": "allow_once", "name": "allow_once"},
        {"id": "n", "kind": "reject_once", "name": "No"},
    )


@pytest.mark.parametrize(
    ("step", "dynamic"),
    [
        ("{say: Hello}", False),
        ('{say: "${prompt}"}', True),
        ('{say: "$${prompt}"}', True),
        ('{say: x, meta: {a: ["${turn}"]}}', True),
        ('{say: x, message_id: "${turn}"}', True),
        ('{say: x, when: {mode: "${saved.m}"}, save: {m: /x}}', False),
        ('{repeat: {times: 1, steps: [{say: "${prompt}"}]}}', False),
        ('{ask: {title: x}, then: [{steps: [{say: "${prompt}"}]}]}', False),
        ('{together: [{say: "${prompt}"}, [{say: "${prompt}"}]]}', False),
    ],
)
def test_a_step_knows_whether_it_has_placeholders_of_its_own(step: str, dynamic: bool) -> None:
    assert steps(f"[{step}]")[0].dynamic is dynamic


def test_message_id_can_be_absent_null_or_given() -> None:
    given = steps("[{say: a}, {say: b, message_id: null}, {say: c, message_id: m}]")
    assert [step.message_id for step in given] == [msgspec.UNSET, None, "m"]


def test_places_are_lines_columns_and_paths() -> None:
    step = load_text("turns:\n  - steps:\n      - wait: 1s\n      - say: x\n").turns[0].steps[1]
    assert step.place == model.Place("scenario.yaml", 4, 9, "turns/0/steps/1")


def test_a_local_file_is_found_beside_the_scenario() -> None:
    scenario = load(GOOD / "every-verb.yaml")
    images = [part for step in scenario.turns[0].steps if step.verb == "say" for part in step.payload]
    found = next(part for part in images if isinstance(part, dict) and "image" in part)
    assert found == {"image": str(GOOD / "pixel.png"), "mime": "image/png"}


def test_capabilities_are_flat() -> None:
    made = load_text("agent: {capabilities: {load: false, prompt: {image: false}, stream: false}}").agent.capabilities
    assert (made.load, made.list, made.image, made.audio) == (False, True, False, True)
    assert (made.stream_delta, made.stream_message, made.stream_none) == (False, False, False)


def test_option_choices_can_be_short_and_grouped() -> None:
    text = "agent: {options: [{id: a, type: select, value: y, choices: [x, {group: g, choices: [y]}]}]}"
    assert load_text(text).agent.options[0].choices == (
        {"value": "x", "name": "x"},
        {"name": "g", "group": "g", "options": ({"value": "y", "name": "y"},)},
    )


def test_shorthands_become_faults_that_say_where_they_come_from() -> None:
    scenario = load_text("legality: violation\nsessions:\n  unknown: create\n  inactive: session_inactive\n")
    assert scenario.sessions.unknown == "create"
    (fault,) = scenario.faults
    assert (fault.shorthand, fault.at, fault.effects) == ("unknown", "refusal:session_not_found", {"instead": "create"})
    assert (fault.place.line, fault.place.path) == (3, "sessions/unknown")


def test_effects_stand_in_the_order_of_their_layers() -> None:
    (fault,) = load_text("faults: [{at: say, stderr: x, truncate: 3, edit: {remove: /a}}]").faults
    assert list(fault.effects) == ["edit", "truncate", "stderr"]


@pytest.mark.parametrize(
    ("written", "built"),
    [
        ("cursor: null", {"cursor": "null"}),
        ("cursor: repeat", {"cursor": "repeat"}),
        ("page: {overlap: 2}", {"page": {"overlap": 2}}),
        ("rows: {set: {title: null}}", {"rows": ({"match": "*", "set": {"title": None}},)}),
        ("hold: reply", {"hold": {"until": "reply"}}),
        ("hold: {until: 2s}", {"hold": {"until": 2_000_000}}),
        ("rate: 2KB/s", {"rate": 2000.0}),
        ("split: {parts: 2}", {"split": {"into": "writes", "parts": 2}}),
        ("ignore: cancel", {"ignore": ("cancel",)}),
        ("edit: {set: /a, to: 1, as: string}", {"edit": ({"set": "/a", "to": 1, "as": "string"},)}),
    ],
)
def test_an_effect_is_built_in_one_form(written: str, built: dict[str, Any]) -> None:
    at = "cancel" if "ignore" in written else "list"
    assert load_text(f"faults: [{{at: {at}, {written}}}]").faults[0].effects == built


@pytest.mark.parametrize(
    ("written", "count"),
    [
        ("2", model.Count(numbers=frozenset({2}))),
        ("[2, 4]", model.Count(numbers=frozenset({2, 4}))),
        ("3..", model.Count(low=3)),
        ("2..4", model.Count(low=2, high=4)),
        ("..4", model.Count(high=4)),
    ],
)
def test_nth_has_five_forms(written: str, count: model.Count) -> None:
    when = load_text(f"turns: [{{when: {{nth: {written}}}}}]").turns[0].when
    assert when is not None
    assert when.nth == count


def test_the_core_schema_of_yaml_1_2_decides_what_a_plain_scalar_is() -> None:
    scenario = load(GOOD / "core-schema.yaml")
    say, request = scenario.turns[0].steps
    assert say.payload == ("yes", "no", "on", "off", "2026-01-15", "12:30:45", "014")
    assert request.payload.params == {
        "a": "yes",
        "b": "on",
        "c": "2026-01-15",
        "d": "12:30:45",
        "e": 14,
        "f": 12,
        "g": 31,
        "h": 1000.0,
        "i": None,
        "j": True,
        "k": "true",
        "l": "1_000",
    }


@pytest.mark.parametrize("legality", ["violation", "unspecified"])
def test_words_of_the_future_can_be_said_where_legality_is_not_allowed(legality: str) -> None:
    text = f"legality: {legality}\nturns: [{{steps: [{{tool: {{kind: dream}}}}, {{stop: someday}}]}}]"
    assert load_text(text).turns[0].steps[1].payload == "someday"


def test_a_missing_c_loader_is_said_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "yaml.cyaml", None)
    (problem,) = problems("{}")
    assert "without libyaml" in problem


def test_a_path_that_cannot_be_read_is_a_problem_of_the_file(tmp_path: Path) -> None:
    for path, why in ((tmp_path / "none.yaml", "no such file"), (tmp_path, "is a directory")):
        with pytest.raises(ScenarioError, match=why):
            load(path)


def test_a_byte_order_mark_is_no_mistake() -> None:
    assert load_text(b"\xef\xbb\xbfname: x").name == "x"
