"""The page on AAP, done as it stands there: its requests with curl, and its heartbeats."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from mockagent.scenario.load import load_text
from tests.interop.client import Child

PAGE = (Path(__file__).parents[2] / "docs" / "aap.md").read_text(encoding="utf-8")
MARK = "next block"


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_the_requests_print_what_the_page_says(start: type[Child]) -> None:
    address = start("serve", "tool-permission", "--port", "0", "--speed", "0").address()
    program = f"echo; echo {MARK}\n".join(blocks("sh")).replace("localhost:8765", address)
    done = subprocess.run(["sh", "-euc", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    told = [part.strip() for part in done.stdout.split(MARK)]
    assert told == [part.strip() for part in blocks("text")]


def test_the_examples_are_scenarios() -> None:
    (example,) = blocks("yaml")
    assert load_text(f"name: example\n{example}").schedule
