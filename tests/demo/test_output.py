"""A standard output that takes nothing ends a command in order, whichever it is."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

COMMANDS = [
    ["scenarios"],
    ["scenarios", "late-title"],
    ["scenarios", "echo"],
    ["scenarios", "--json"],
    ["schema"],
    ["sessions", "demo"],
    ["sessions", "demo", "--json"],
    ["demo", "echo", "--speed", "0"],
    ["check", "/nowhere.yaml"],
    ["--help"],
    ["--version"],
    ["demo", "--help"],
]

each_command = pytest.mark.parametrize("command", COMMANDS, ids=" ".join)


def ended(command: list[str], redirection: str) -> tuple[int, str]:
    """Exit status and standard error of a command whose standard output the shell has redirected."""
    line = f'exec "$@" {redirection}'
    done = subprocess.run(
        ["sh", "-c", line, "sh", sys.executable, "-m", "mockagent", *command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device here")
@each_command
def test_a_full_output_is_said_in_one_line(command: list[str]) -> None:
    assert ended(command, ">/dev/full") == (
        1,
        "mockagent: cannot write to standard output: No space left on device\n",
    )


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of POSIX closes it")
@each_command
def test_a_closed_output_is_said_in_one_line(command: list[str]) -> None:
    assert ended(command, ">&-") == (1, "mockagent: cannot write to standard output: Bad file descriptor\n")


@pytest.mark.skipif(sys.platform == "win32", reason="pipes of POSIX break")
@each_command
def test_a_reader_who_has_left_hears_of_nothing(command: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "mockagent", *command],
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    finally:
        os.close(writing)
    assert done.stderr == b""
    assert done.returncode in (0, 1)
