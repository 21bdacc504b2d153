"""The demo from end to end, over the real message path: what people read, and that it always ends."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
from typing import Any, NamedTuple

import pytest
import trio
from rich.console import Console
from trio.testing import MockClock

from mockagent.demo.screen import Screen
from mockagent.demo.show import TOTAL, play
from mockagent.scenario import library
from mockagent.scenario.load import load_text
from mockagent.scenario.model import Scenario


class Shown(NamedTuple):
    """What a show has printed, and how many seconds it took on its own clock."""

    text: str
    seconds: float


def played(
    scenario: Scenario | str,
    *,
    width: int = 80,
    live: bool = False,
    speed: float | None = None,
    prompt: str | None = None,
) -> Shown:
    """Plays a scenario. Time is mocked: the agent's waits cost nothing."""
    file = io.StringIO()
    console = Console(
        file=file, width=width, height=40, force_terminal=live, highlight=False, emoji=False, markup=False, _environ={}
    )
    made = load_text(scenario) if isinstance(scenario, str) else scenario

    async def main() -> float:
        begin = trio.current_time()
        await play(made, Screen(console, live=live), speed=speed, seed=None, prompt=prompt)
        return trio.current_time() - begin

    seconds = trio.run(main, clock=MockClock(autojump_threshold=0))
    return Shown(file.getvalue(), seconds)


def show(scenario: Scenario | str, **how: Any) -> str:
    """The text of a show."""
    return played(scenario, **how).text


def in_order(text: str, *pieces: str) -> bool:
    """Whether all pieces stand in the text, one after the other; ends of lines count as spaces."""
    at = 0
    flat = " ".join(text.split())
    for piece in pieces:
        found = flat.find(piece, at)
        assert found >= 0, f"{piece!r} is missing behind {flat[max(at - 60, 0) : at]!r} in\n{text}"
        at = found + len(piece)
    return True


def test_the_default_demo_tells_its_story() -> None:
    text = show(library.open_scenario("demo"))
    assert in_order(
        text,
        "mockagent demo: demo",
        "Mock Coder 1.0.0",
        "Sessions",
        "Debug the login",
        "❯ Make the greeting friendlier, please.",
        "The greeting should be friendlier.",
        "Plan → Read the code",
        "✓ read Read src/greet.py",
        "src/greet.py:1",
        "● One line in `src/greet.py`",
        "✓ edit Edit src/greet.py",
        "- return 'Hello ' + name",
        "+ return f'Hello {name}, good to see you!'",
        "permission: Allow / Always allow / Reject → Allow",
        "3 passed in 0.21 s",
        "Plan ✓ Read the code ✓ Change the greeting ✓ Run the tests",
        "● Done, and the tests pass:",
        "stop: end_turn · 4,200 of 200,000 tokens · 0.02 USD",
        "↻ title, after the turn: (untitled) → A friendlier greeting",
    )


def test_the_default_demo_takes_about_fifteen_seconds() -> None:
    assert 11 < played(library.open_scenario("demo")).seconds < 19


def test_what_is_not_a_terminal_gets_plain_text() -> None:
    text = show(library.open_scenario("demo"), speed=0)
    assert "\x1b" not in text
    assert "\r" not in text
    assert not [line for line in text.splitlines() if line != line.rstrip()]


def test_a_terminal_gets_the_same_story_with_a_changing_part() -> None:
    text = show(library.open_scenario("demo"), live=True)
    assert "\x1b[2K" in text  # lines are erased and drawn again
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    assert in_order(plain, "Make the greeting friendlier, please.", "Plan", "stop: end_turn", "A friendlier greeting")
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h")  # the cursor is there again


def test_no_line_is_wider_than_a_narrow_terminal() -> None:
    text = show(library.open_scenario("permissions"), width=32, speed=0)
    assert max(map(len, text.splitlines())) <= 32


def test_the_prompt_can_be_given() -> None:
    text = show("turns: [{steps: [{say: 'You said ${prompt}.'}]}]", speed=0, prompt="Good morning")
    assert in_order(text, "❯ Good morning", "● You said Good morning.")


def test_a_turn_that_hangs_is_cancelled() -> None:
    text = show("turns: [{steps: [{say: Working}, {hang: true}]}]")
    assert in_order(text, "● Working", "the client cancels the turn (nothing for 4 seconds)", "stop: cancelled")


def test_an_agent_that_ignores_the_cancel_is_given_up() -> None:
    text = show("legality: violation\nturns: [{steps: [{say: a}]}]\nfaults: [{at: 'reply:session/prompt', drop: true}]")
    assert in_order(text, "the client cancels the turn", "not even after session/cancel")


def test_a_turn_that_talks_without_end_is_cancelled() -> None:
    text = show("turns: [{steps: [{repeat: {every: 1s, steps: [{say: tick}]}}]}]")
    assert in_order(text, "● tick", "● tick", "30 seconds are enough", "stop: cancelled")


def test_a_wait_that_the_scenario_has_is_no_hang() -> None:
    text = show("turns: [{steps: [{wait: 9s}, {say: At last.}]}]")
    assert in_order(text, "● At last.", "stop: end_turn")
    assert "cancels" not in text


def test_the_whole_show_is_bounded() -> None:
    turns = ", ".join(
        f"{{when: {{turn: {n}}}, steps: [{{repeat: {{every: 1s, steps: [{{say: x}}]}}}}]}}" for n in (1, 2, 3)
    )
    text, seconds = played(f"turns: [{turns}]")
    assert seconds <= TOTAL + 1
    assert "the client stops here: 60 seconds are over" in text


def test_an_error_is_shown_with_its_data() -> None:
    text = show("turns: [{steps: [{fail: {code: -32000, message: Broken, data: {reason: x}}}]}]", speed=0)
    assert in_order(text, "✗ session/prompt: error -32000 Broken", '{"reason":"x"}')


def test_a_connection_that_ends_is_shown() -> None:
    text = show("legality: violation\nturns: [{steps: [{say: Bye}, {disconnect: close}]}]", speed=0)
    assert in_order(text, "● Bye", "✗ the agent has closed the connection")


@pytest.mark.parametrize(
    ("how", "words"),
    [("{code: 7}", "has ended with exit status 7"), ("{signal: SIGKILL}", "was killed by SIGKILL")],
)
def test_an_agent_that_exits_does_not_take_the_show_with_it(how: str, words: str) -> None:
    text = show(f"legality: violation\nturns: [{{steps: [{{say: Bye}}, {{exit: {how}}}]}}]", speed=0)
    assert in_order(text, "● Bye", f"✗ the agent {words}")


def test_what_the_agent_asks_of_a_client_is_answered() -> None:
    text = show(
        """
turns:
  - steps:
      - {read: {path: a.py, line: 2, limit: 1}, then: [{steps: [{say: I have read it.}]}]}
      - {write: {path: b.py, content: xyz}, then: [{steps: [{say: I have written it.}]}]}
      - elicit: {message: Which branch?, schema: {type: object, properties: {branch: {type: string, enum: [main]}}}}
        then: [{when: {text: "*main*"}, steps: [{say: On main.}]}]
      - {ask: {title: Delete it}, then: [{when: {outcome: granted}, steps: [{say: Granted.}]}]}
      - {request: _acme/odd, then: [{when: {outcome: error}, steps: [{say: It does not know that.}]}]}
""",
        speed=0,
    )
    assert in_order(
        text,
        "the client reads /home/dev/project/a.py",
        "I have read it.",
        "the client writes /home/dev/project/b.py (3 characters)",
        "I have written it.",
        "is asked: Which branch?",
        'answers {"branch":"main"}',
        "On main.",
        "Delete it",
        "permission: Allow / Reject → Allow",
        "Granted.",
        "_acme/odd: unknown here",
        "It does not know that.",
        "stop: end_turn",
    )


def test_a_question_that_is_open_at_the_cancel_is_answered_with_cancelled() -> None:
    """The user here never makes up their mind, because the clock of the agent is slower than its patience."""
    text = show(
        "turns: [{steps: [{ask: {title: Really}, then: [{when: {outcome: cancelled}, steps: []}]}]}]", speed=0.1
    )
    assert in_order(text, "the client cancels the turn", "permission: Allow / Reject → cancelled", "stop: cancelled")


def test_an_agent_that_wants_authentication_gets_it() -> None:
    text = show(
        "agent: {auth: {required: true, methods: [{id: login, name: Log in}]}}\nturns: [{steps: [{say: Welcome}]}]",
        speed=0,
    )
    assert in_order(text, "error -32000 Authentication required", "authenticates: Log in", "● Welcome")


def test_garbage_is_shown_and_survived() -> None:
    text = show(
        """
legality: violation
turns:
  - steps:
      - send: "this is no JSON"
      - send: {jsonrpc: "2.0", id: 4711, result: {}}
      - update: {sessionUpdate: agent_message_chunk, content: 7}
      - update: {sessionUpdate: tool_call, title: 3}
      - update: {sessionUpdate: plan, entries: null}
      - update: {sessionUpdate: session_info_update, title: 9}
      - update: {sessionUpdate: usage_update, used: many}
      - update: {sessionUpdate: _unheard_of, a: 1}
      - notify: {method: _acme/tick, params: {n: 1}}
      - say: Still here.
""",
        speed=0,
    )
    assert in_order(
        text, "this is no JSON", "an answer to nothing", "_unheard_of", "_acme/tick", "● Still here.", "stop:"
    )


def test_control_characters_do_nothing_to_the_terminal() -> None:
    text = show('turns: [{steps: [{say: "a\\e[31mred\\rb"}, {info: {title: "x\\ey"}}]}]', speed=0)
    assert "\x1b" not in text
    assert "\r" not in text
    assert "a␛[31mred␍b" in text


def test_what_comes_after_the_turn_says_so() -> None:
    text = show("turns: [{steps: [{say: One}, {stop: end_turn}, {say: Two, after: 3s}]}]")
    assert in_order(text, "● One", "stop: end_turn", "after the turn:", "● Two")


def test_stderr_of_the_agent_is_shown_and_a_flood_is_cut() -> None:
    text = show("turns: [{steps: [{stderr: {text: noise, bytes: 1000000}}, {say: Hi}]}]", speed=0)
    assert in_order(text, "stderr: noise", "…", "● Hi")
    assert len(text) < 8000


def test_a_very_long_message_is_cut() -> None:
    text = show(f"turns: [{{steps: [{{say: '{'word ' * 5000}'}}, {{say: Next.}}]}}]", speed=0)
    assert in_order(text, "word", "● Next.")
    assert len(text) < 40_000


@pytest.mark.parametrize("name", library.names())
def test_every_bundled_scenario_can_be_shown_and_ends(name: str) -> None:
    text = show(library.open_scenario(name))
    assert "❯ " in text or "✗ " in text
    assert "Traceback" not in text


COMMAND = [sys.executable, "-c", "from mockagent.cli import main; main()", "demo"]


def test_the_command_in_a_pipe_writes_plain_text_and_ends_with_zero() -> None:
    done = subprocess.run([*COMMAND, "hello", "--speed", "0"], capture_output=True, timeout=60, check=False)
    assert done.returncode == 0
    assert b"Hello! I am a mock agent." in done.stdout
    assert b"\x1b" not in done.stdout
    assert done.stderr == b""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_ends_it_with_130_and_no_traceback() -> None:
    with subprocess.Popen([*COMMAND, "stops/cancelled"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for line in process.stdout:
            if b"This will take a while" in line:
                break
            if b"Hello" in line:  # the prompt: from here on signals are handled
                break
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
        assert process.stderr.read() == b""


@pytest.mark.skipif(sys.platform == "win32", reason="pipes of POSIX")
def test_a_reader_that_leaves_ends_it_quietly() -> None:
    with subprocess.Popen([*COMMAND, "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        os.read(process.stdout.fileno(), 10)
        process.stdout.close()
        assert process.wait(timeout=60) == 0
        assert process.stderr.read() == b""
