"""A client in Node, once with the fixture of pytest and once with Node's own test runner."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mockagent as package

HERE = Path(__file__).parent
NODE = shutil.which("node")

if NODE is None and not os.environ.get("MOCKAGENT_REQUIRE_NODE"):
    pytest.skip("there is no node", allow_module_level=True)

TALK = """
import { Client } from "./client.mjs";
const client = new Client(JSON.parse(process.argv[1]));
await client.introduce();
const { sessions } = await client.request("session/list", {});
console.log(JSON.stringify(sessions.map((session) => session.title)));
process.exit(await client.close());
"""


def node(*arguments, **environment):
    done = subprocess.run(
        [NODE, *arguments],
        cwd=HERE,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "NO_COLOR": "1", **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.mockagent("scenarios/inbox.yaml")
def test_a_node_client_lists_sessions(mockagent):
    out = node("--input-type=module", "-e", TALK, json.dumps(mockagent.stdio_command))
    assert json.loads(out) == ["First", "Second"]
    assert len(mockagent.journal.requests("session/list")) == 1


def test_the_node_client_tests_itself():
    command = [sys.executable, str(Path(package.__file__).with_name("__main__.py"))]
    assert "# fail 0" in node("--test", "--test-reporter=tap", MOCKAGENT=json.dumps(command))
