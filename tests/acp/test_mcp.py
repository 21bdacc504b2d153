"""The client's MCP servers: a real one, written with the official package, over all three transports.

It takes half a second to start. What is about the mock's side alone is tested with one that is there at once.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from mockagent.acp import mcp as connecting
from tests.acp.pipe import Json, playing

REAL = Path(__file__).parent / "mcp_server.py"
PLAIN = Path(__file__).parent / "mcp_plain.py"

if importlib.util.find_spec("mcp") is None:
    if os.environ.get("CI"):
        raise ImportError("the extra `mcp` belongs to the tests: pip install '.[test]'")
    pytest.skip("the extra `mcp` is not installed", allow_module_level=True)

SCENARIO = """
agent: {{mcp: {how}}}
sessions: {{auto_title: null}}
turns:
  - when: {{prompt: "*slow*"}}
    steps: [{{mcp: {{server: w, tool: slow}}}}, {{say: never}}]
  - when: {{prompt: "*patience*"}}
    steps:
      - mcp: {{server: w, tool: slow}}
        timeout: 200ms
        then: [{{when: {{outcome: timeout}}, steps: [{{say: late}}]}}]
  - steps:
      - mcp: {{server: w, tool: forecast, arguments: {{city: Osaka}}}}
        save: {{text: /result/content/0/text}}
        then:
          - {{when: {{outcome: result, text: "*18*"}}, steps: [{{say: "${{saved.text}}"}}]}}
          - {{when: {{outcome: error}}, steps: [{{say: failed}}]}}
      - mcp: {{server: w, tool: count, arguments: {{n: 1}}}}
      - mcp: {{server: w, tool: broken}}
      - mcp: {{server: w, tool: none}}
      - {{mcp: {{server: other, tool: x}}, otherwise: [{{say: no such server}}]}}
"""


@pytest.fixture(scope="module", params=["stdio", "http", "sse"])
def server(request: pytest.FixtureRequest) -> Iterator[Json]:
    """How a client names the server, which runs where it has to be there before."""
    program = [sys.executable, str(REAL), request.param]
    if request.param == "stdio":
        yield started(*program)
        return
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        path = "mcp" if request.param == "http" else "sse"
        yield {
            "type": request.param,
            "name": "w",
            "url": f"http://127.0.0.1:{port}/{path}",
            "headers": [{"name": "X-Test", "value": "1"}],
        }
        process.kill()


def started(command: str, *args: str, **env: str) -> Json:
    """How a client names a server that the agent starts."""
    pairs = [{"name": name, "value": value} for name, value in env.items()]
    return {"name": "w", "command": command, "args": list(args), "env": pairs}


def plain(*args: str, **env: str) -> Json:
    """The server that is there at once."""
    return started(sys.executable, "-S", str(PLAIN), *args, **env)


def code(text: str) -> Json:
    """A program that is no server."""
    return started(sys.executable, "-S", "-c", text)


def calls(messages: list[Any]) -> list[Json]:
    """Each tool call as it stands after its last update."""
    found: dict[str, Json] = {}
    for message in messages:
        update = message.get("params", {}).get("update", {})
        if "toolCallId" in update:
            found.setdefault(update["toolCallId"], {}).update(update)
    return list(found.values())


def said(messages: list[Any]) -> list[str]:
    updates = [message.get("params", {}).get("update", {}) for message in messages]
    return [update["content"]["text"] for update in updates if update.get("sessionUpdate") == "agent_message_chunk"]


@pytest.mark.parametrize("how", ["connect", "require"])
async def test_steps_call_the_tools_of_a_server(server: Json, how: str) -> None:
    async with playing(SCENARIO.format(how=how)) as client:
        await client.greet()
        messages = await client.prompt(await client.new(mcpServers=[server]))
        forecast, count, broken, none = calls(messages)
        assert (forecast["name"], forecast["title"], forecast["status"]) == ("forecast", "w: forecast", "completed")
        assert forecast["rawInput"] == {"city": "Osaka"}
        assert forecast["content"][0]["content"]["text"] == "Osaka: 18°C"
        assert (count["rawOutput"], count["status"]) == ({"n": 1, "next": 2}, "completed")
        assert [broken["status"], none["status"]] == ["failed", "failed"]
        assert "broken" in broken["content"][0]["content"]["text"]
        assert said(messages) == ["Osaka: 18°C", "no such server"]
        assert messages[-1]["result"] == {"stopReason": "end_turn"}


async def test_a_server_is_connected_again_on_load_and_resume(server: Json) -> None:
    async with playing(SCENARIO.format(how="require")) as client:
        await client.greet()
        session = await client.new()
        assert calls(await client.prompt(session)) == []
        params = {"sessionId": session, "cwd": "/home/dev/project", "mcpServers": [server]}
        for method in ("session/load", "session/resume"):
            assert "result" in await client.call(method, params)
            messages = await client.prompt(session)
            assert "18°C" in said(messages)[0]
        await client.call("session/resume", {**params, "mcpServers": []})
        assert said(await client.prompt(session)) == ["no such server"]


async def test_the_environment_that_the_client_names_reaches_the_server() -> None:
    async with playing(SCENARIO.format(how="connect")) as client:
        await client.greet()
        session = await client.new(mcpServers=[plain(UNIT_NOTE=", as you wished")])
        assert said(await client.prompt(session))[0] == "Osaka: 18°C, as you wished"


GONE: list[tuple[str, Json]] = [
    ("a command that is not there", started("/no/such/program")),
    ("a program that leaves at once", code("pass")),
    ("nobody listens", {"type": "http", "name": "w", "url": "http://127.0.0.1:9/mcp", "headers": []}),
    ("nobody listens", {"type": "sse", "name": "w", "url": "http://127.0.0.1:9/sse", "headers": []}),
]


SILENT: list[tuple[str, Json]] = [
    (
        "a program that says nonsense, and does not leave",
        code("print('hello', flush=True); import time; time.sleep(60)"),
    ),
    ("a program that says nothing", code("import sys; sys.stdin.read()")),
]


@pytest.mark.parametrize("gone", [row[1] for row in GONE], ids=[row[0] for row in GONE])
async def test_a_server_that_cannot_be_had_fails_the_session_or_the_call(gone: Json) -> None:
    await fails(gone)


@pytest.mark.parametrize("silent", [row[1] for row in SILENT], ids=[row[0] for row in SILENT])
async def test_a_server_that_never_answers_counts_as_one_that_cannot_be_had(
    silent: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "CONNECT_PATIENCE", 0.1)  # the one wait that is real
    await fails(silent)


async def fails(gone: Json) -> None:
    """It fails a session that requires it, and the calls in one that does not."""
    async with playing(SCENARIO.format(how="require")) as client:
        await client.greet()
        params = {"cwd": "/home/dev/project", "mcpServers": [gone]}
        error = (await client.call("session/new", params))["error"]
        assert (error["code"], error["data"]["reason"], error["data"]["server"]) == (-32603, "mcp_server_failed", "w")
        assert "'w'" in error["message"]
        assert (await client.call("session/list"))["result"]["sessions"] == []
    async with playing(SCENARIO.format(how="connect")) as client:
        await client.greet()
        messages = await client.prompt(await client.new(mcpServers=[gone]))
        assert [call["status"] for call in calls(messages)] == ["failed"] * 4
        assert said(messages) == ["failed", "no such server"]


async def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Any:
        raise ImportError("mcp")

    monkeypatch.setattr(connecting, "_library", missing)
    async with playing(SCENARIO.format(how="require")) as client:
        await client.greet()
        params = {"cwd": "/home/dev/project", "mcpServers": [plain()]}
        assert "acp-mockagent[mcp]" in (await client.call("session/new", params))["error"]["message"]


async def test_a_call_that_never_ends_is_taken_back_in_time() -> None:
    async with playing(SCENARIO.format(how="connect")) as client:
        await client.greet()
        session = await client.new(mcpServers=[plain()])
        messages = await client.prompt(session, "have patience")
        assert (said(messages), calls(messages)[0]["status"]) == (["late"], "failed")
        assert "18°C" in said(await client.prompt(session))[0]


async def test_a_cancelled_turn_ends_its_call() -> None:
    async with playing(SCENARIO.format(how="require")) as client:
        await client.greet()
        session = await client.new(mcpServers=[plain()])
        content = [{"type": "text", "text": "slow"}]
        turn = await client.ask("session/prompt", {"sessionId": session, "prompt": content})
        await client.read()
        await client.send({"method": "session/cancel", "params": {"sessionId": session}})
        assert (await client.until_reply(turn))["result"] == {"stopReason": "cancelled"}
        assert calls(client.seen)[-1]["status"] == "failed"


def alive(mark: str) -> bool:
    """Whether a server that was started with this mark is still there."""
    return any(
        mark in path.read_bytes().decode(errors="replace")
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if path.exists()
    )


@pytest.mark.skipif(not Path("/proc").exists(), reason="processes are looked up in /proc")
@pytest.mark.parametrize("end", ["session/close", "session/delete", "leave", "session/resume"])
async def test_servers_end_with_their_session(end: str, tmp_path: Path) -> None:
    mark = f"--mark-{tmp_path.name}-{os.getpid()}"
    named = plain(mark)
    async with playing(SCENARIO.format(how="require")) as client:
        await client.greet()
        session = await client.new(mcpServers=[named])
        assert alive(mark)
        if end == "leave":
            await client.stream.send_stream.aclose()
        else:
            await client.call(end, {"sessionId": session, "cwd": "/home/dev/project"})
        while alive(mark):  # noqa: ASYNC110 - nobody tells when a process of another has ended
            await trio.sleep(0.02)


async def test_with_check_nothing_is_started(tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    named = code(f"open({str(touched)!r}, 'w')")
    async with playing(SCENARIO.format(how="check")) as client:
        await client.greet()
        messages = await client.prompt(await client.new(mcpServers=[named]))
        assert (calls(messages), said(messages)) == ([], ["no such server"])
    assert not touched.exists()


def test_nothing_of_it_is_imported_before_it_is_needed() -> None:
    code = "import mockagent.host, mockagent.acp.stdio, sys; print('mcp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
