"""A journal or a report that cannot be written is refused before anything is played."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from mockagent.cli import main
from mockagent.watch.writable import why_not

both = pytest.mark.parametrize("option", ["--journal", "--report"])


@both
@pytest.mark.parametrize("command", ["acp", "serve"])
def test_a_file_in_a_folder_that_is_not_there_is_an_error_at_the_start(
    option: str, command: str, tmp_path: Path
) -> None:
    path = tmp_path / "nowhere" / "file"
    ended = CliRunner().invoke(main, [command, "echo", option, str(path)])
    assert ended.exit_code == 2
    assert ended.stdout == ""
    assert ended.stderr == f"mockagent: {option} {path}: it cannot be written: No such file or directory\n"


def test_what_is_in_a_file_stays_when_it_is_only_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("before")
    assert why_not(str(file)) is None
    assert file.read_text() == "before"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_without_a_reader_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert why_not(str(tmp_path / "pipe")) is None


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device here")
@both
def test_a_disk_that_is_full_later_is_told_once_and_the_play_goes_on(option: str) -> None:
    line = b'{"jsonrpc":"2.0","id":%d,"method":"initialize","params":{"protocolVersion":1}}\n'
    played = subprocess.run(
        [sys.executable, "-m", "mockagent", "acp", "echo", option, "/dev/full"],
        input=line % 1 + line % 2,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert played.returncode == 0
    assert len(played.stdout.splitlines()) == 2
    assert played.stderr.count(b"No space left on device") == 1
