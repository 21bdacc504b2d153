"""Every example of the pages on testing and control runs as it stands there.

A block behind `<!-- file: NAME -->` is a file of a project; one behind `<!-- run -->` is run by the shell.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

import mockagent
from mockagent.testing import MockAgent
from tests.testing.project import environment, run_pytest

DOCS = Path(__file__).parents[2] / "docs"
VITEST = Path(__file__).with_name("vitest")
COMMAND = json.dumps([sys.executable, str(Path(mockagent.__file__).with_name("__main__.py"))])
BLOCK = re.compile(r"^<!-- (?P<what>file: (?P<name>\S+)|run) -->\n```\w+\n(?P<text>.*?)^```$", re.M | re.S)


def missing(what: str) -> NoReturn:
    """Skips the test, or fails it where it has to run."""
    if os.environ.get("MOCKAGENT_REQUIRE_NODE") == "1":
        pytest.fail(what)
    pytest.skip(what)


def blocks(page: str) -> dict[str, str]:
    """The examples of a page, by the name of their file; `run` for those of the shell."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return {match["name"] or "run": match["text"] for match in BLOCK.finditer(text)}


def write(folder: Path, page: str) -> list[str]:
    """Writes the files of a page; returns their names."""
    files = blocks(page)
    files.pop("run", None)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return list(files)


def test_the_python_examples_pass(tmp_path):
    names = write(tmp_path, "testing.md")
    assert len([name for name in names if name.startswith("test_")]) == 4
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    done = run_pytest(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("page", "count"), [("testing.md", 2), ("control.md", 3)])
def test_the_vitest_examples_pass(tmp_path, page, count):
    node, vitest = shutil.which("node"), VITEST / "node_modules" / "vitest" / "vitest.mjs"
    if node is None:
        missing("there is no node")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if tuple(int(part) for part in version.removeprefix("v").split(".")[:2]) < (22, 13):
        missing(f"node is {version}, and vitest needs 22.13")
    if not vitest.exists():
        missing("vitest is not installed; `npm install --prefix tests/testing/vitest` brings it")
    write(tmp_path, page)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "node_modules").symlink_to(VITEST / "node_modules")
    done = subprocess.run(
        [node, str(vitest), "run", "--reporter=default", "--reporter=json", "--outputFile=told.json", "--no-cache"],
        cwd=tmp_path,
        env=environment(MOCKAGENT=COMMAND, NO_COLOR="1"),
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((tmp_path / "told.json").read_text())["numPassedTests"] == count


def test_the_curl_example_runs(tmp_path):
    if shutil.which("curl") is None or shutil.which("sh") is None:
        pytest.skip("there is no curl")
    script = blocks("control.md")["run"]
    with MockAgent("demo") as mock:
        done = subprocess.run(
            ["sh", "-eu", "-c", script.replace("http://127.0.0.1:8765", mock.url)],
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"title":"Second"' in done.stdout


def test_every_endpoint_is_in_the_table():
    from mockagent.control.service import ENDPOINTS

    text = (DOCS / "control.md").read_text(encoding="utf-8")
    for path, method in ENDPOINTS:
        assert f"`{method} /_mock/{path}" in text


def test_every_method_of_the_object_is_in_the_table():
    from mockagent.testing.agent import MockAgent as Class

    text = (DOCS / "testing.md").read_text(encoding="utf-8")
    for name in vars(Class):
        if not name.startswith("_") and name != "url":
            assert name in text, name
