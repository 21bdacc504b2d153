"""What the demo's client works out beforehand: prompts that turns answer, and waits that are no hang."""

from __future__ import annotations

import pytest

from mockagent.demo.course import aftermath, longest_wait, prompts
from mockagent.scenario import library
from mockagent.scenario.load import load_text


@pytest.mark.parametrize(
    ("turns", "said"),
    [
        ("[]", ["Hello"]),
        ("[{steps: [{say: hi}]}]", ["Hello"]),
        ('[{when: {prompt: "*weather*"}, steps: [{say: a}]}]', ["weather"]),
        ('[{when: {prompt: "fix *"}, steps: [{say: a}]}]', ["fix this"]),
        ('[{when: {prompt: "/^deploy (.+)$/"}, steps: [{say: a}]}]', ["deploy this"]),
        ("[{when: {command: plan}, steps: [{say: a}]}]", ["/plan"]),
        # what cannot be guessed is left to whoever plays it
        ('[{when: {prompt: "/^[aeiou]{7}$/"}, steps: [{say: a}]}]', ["Hello"]),
        # the turn for everything comes first, then the special ones
        ('[{when: {prompt: "*fail*"}, steps: [{say: a}]}, {steps: [{say: b}]}]', ["Hello", "fail"]),
        # what the turn before has ended with counts
        ("[{when: {last_stop: refusal}, steps: [{say: a}]}, {steps: [{stop: refusal}]}]", ["Hello", "Hello"]),
        ("[{when: {last_stop: error}, steps: [{say: a}]}, {steps: [{fail: busy}]}]", ["Hello", "Hello"]),
        ("[{when: {turn: 2}, steps: [{say: a}]}, {steps: [{say: b}]}]", ["Hello", "Hello"]),
    ],
)
def test_prompts_reach_as_many_turns_as_they_can(turns: str, said: list[str]) -> None:
    assert prompts(load_text(f"turns: {turns}")) == said


def test_there_are_three_prompts_at_most() -> None:
    turns = ", ".join(f'{{when: {{prompt: "*{word}*"}}, steps: [{{say: x}}]}}' for word in ("a1", "b2", "c3", "d4"))
    assert prompts(load_text(f"turns: [{turns}]")) == ["a1", "b2", "c3"]


def test_the_default_demo_has_words_of_its_own() -> None:
    assert prompts(library.open_scenario("demo")) == ["Make the greeting friendlier, please."]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("turns: [{steps: [{say: hi}]}]", 0),
        ("turns: [{steps: [{say: hi, after: 2s}, {wait: 7s}]}]", 7),
        ("turns: [{steps: [{wait: {uniform: [1s, 3s]}}]}]", 3),
        ("turns: [{steps: [{tool: {name: t, takes: 4s}, then: [{steps: [{wait: 5s}]}]}]}]", 5),
        ("turns: [{steps: [{together: [{wait: 6s}, {wait: 1s}]}]}]", 6),
        ("faults: [{at: say, delay: 20s}]", 20),
        ("faults: [{at: say, hold: {until: never}}]", 0),
    ],
)
def test_the_longest_wait_is_found_wherever_it_stands(text: str, seconds: float) -> None:
    assert longest_wait(load_text(text)) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("turns: [{steps: [{wait: 5s}, {stop: end_turn}]}]", 0),
        ("turns: [{steps: [{stop: end_turn}, {say: a, after: 2s}, {wait: 1s}]}]", 3),
        ("turns: [{steps: [{ask: {title: x}, then: [{steps: [{stop: end_turn}, {say: a, after: 4s}]}]}]}]", 4),
        ("schedule: [{event: session_opened, after: 1s, every: 2s, times: 2, steps: [{say: a}]}]", 3),
        ("sessions: {auto_title: {after: 6s}}", 6),
    ],
)
def test_what_comes_after_the_turn_is_waited_for(text: str, seconds: float) -> None:
    assert aftermath(load_text(text)) == seconds
