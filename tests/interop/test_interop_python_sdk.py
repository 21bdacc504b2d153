"""The official Python SDK as client of the installed command, over stdio."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.interop.sdk import ALLOW, Connected, Decide, RequestError, cancelled, pick, spawned

LISTED = """\
name: listed
summary: Seven sessions on pages of three, with modes and options.
sessions:
  page_size: 3
  auto_title: null
  stored:
    - id: sess_0
      cwd: /home/dev/api
      title: The first
    - {id: sess_1, cwd: /home/dev/api}
    - {id: sess_2, cwd: /home/dev/api}
    - {id: sess_3, cwd: /home/dev/web}
    - {id: sess_4, cwd: /home/dev/api}
    - {id: sess_5, cwd: /home/dev/api}
    - {id: sess_6, cwd: /home/dev/api}
agent:
  modes: [{id: ask, name: Ask}, {id: code, name: Code}]
  options:
    - id: model
      name: Model
      type: select
      value: fast
      choices: [{value: fast, name: Fast}, {value: deep, name: Deep}]
turns:
  - when: {mode: code}
    steps: [{say: "coding with ${prompt}"}]
  - steps: [{say: "asking about ${prompt}"}]
"""


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> object:
    """The SDK logs what it cannot read; there is nothing of the kind."""
    yield
    assert [record.getMessage() for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []


@pytest.fixture
def listed(tmp_path: Path) -> str:
    path = tmp_path / "listed.yaml"
    path.write_text(LISTED, encoding="utf-8")
    return str(path)


def talk(
    command: str,
    scenario: str,
    what: Callable[[Connected], Awaitable[None]],
    decide: Decide = ALLOW,
    *,
    faultless: bool = True,
) -> None:
    """Holds a conversation with a scenario that does not wait."""

    async def main() -> None:
        async with spawned(command, scenario, "--speed", "0", decide=decide, faultless=faultless) as connected:
            await what(connected)

    asyncio.run(main())


def test_initialize_tells_who_the_agent_is(command: str) -> None:
    async def conversation(mock: Connected) -> None:
        assert mock.hello.protocol_version == 1
        assert mock.hello.agent_info is not None
        assert mock.hello.agent_info.name == "mock-coder"
        assert mock.hello.agent_capabilities is not None
        assert mock.hello.agent_capabilities.load_session

    talk(command, "demo", conversation)


@pytest.mark.parametrize(
    ("decide", "stop", "ending"),
    [
        (pick("allow_once"), "end_turn", "Done."),
        (pick("allow_always"), "end_turn", "Done. I will not ask again."),
        (pick("reject_once"), "end_turn", "As you wish: nothing was changed."),
        (cancelled, "cancelled", ""),
    ],
    ids=["allowed", "allowed for good", "denied", "cancelled"],
)
def test_the_answer_to_a_permission_decides_how_the_turn_goes_on(
    command: str, decide: Decide, stop: str, ending: str
) -> None:
    async def conversation(mock: Connected) -> None:
        session = await mock.new()
        assert await mock.prompt(session, "change it") == stop
        assert [call.title for call in mock.client.asked] == ["Edit config.toml"]
        assert mock.client.text() == "I would like to change a file." + ending
        status = [what.status for _, kind, what in mock.client.heard if kind == "tool_call_update"][-1]
        assert status == ("completed" if ending.startswith("Done") else "failed")

    talk(command, "permissions", conversation, decide)


def test_two_permissions_are_open_at_once(command: str) -> None:
    async def conversation(mock: Connected) -> None:
        await mock.prompt(await mock.new(), "twice")
        assert sorted(call.title for call in mock.client.asked) == ["Delete a.txt", "Delete b.txt"]
        assert mock.client.kinds()[:4].count("permission") == 2

    talk(command, "permissions", conversation)


def test_cancel_in_mid_turn_ends_it_and_the_session_lives_on(command: str) -> None:
    async def conversation(mock: Connected) -> None:
        session = await mock.new()
        turn = asyncio.create_task(mock.prompt(session, "go"))
        await mock.client.until("tool_call")
        await mock.agent.cancel(session_id=session)
        assert await turn == "cancelled"
        again = asyncio.create_task(mock.prompt(session, "again"))
        await mock.client.until("tool_call", 2)
        assert not again.done()
        await mock.agent.cancel(session_id=session)
        assert await again == "cancelled"

    talk(command, "stops/cancelled", conversation)


def test_cancel_while_a_permission_is_open(command: str) -> None:
    async def conversation(mock: Connected) -> None:
        mock.client.willing.clear()
        mock.client.decide = cancelled
        session = await mock.new()
        turn = asyncio.create_task(mock.prompt(session, "change it"))
        await mock.client.until("permission")
        await mock.agent.cancel(session_id=session)
        mock.client.willing.set()
        assert await turn == "cancelled"
        assert mock.client.text() == "I would like to change a file."

    talk(command, "permissions", conversation)


def test_two_sessions_at_once_do_not_mix(command: str) -> None:
    async def conversation(mock: Connected) -> None:
        one, two = await mock.new(), await mock.new()
        assert one != two
        stops = list(await asyncio.gather(mock.prompt(one, "say apples"), mock.prompt(two, "say pears")))
        assert stops == ["end_turn", "end_turn"]
        assert [mock.client.text(one), mock.client.text(two)] == ["apples", "pears"]

    talk(command, "echo", conversation)


def test_a_second_prompt_in_a_busy_session_is_refused(command: str) -> None:
    async def conversation(mock: Connected) -> None:
        session = await mock.new()
        turn = asyncio.create_task(mock.prompt(session, "go"))
        await mock.client.until("tool_call")
        with pytest.raises(RequestError) as refused:
            await mock.prompt(session, "me too")
        assert refused.value.code == -32600
        await mock.agent.cancel(session_id=session)
        assert await turn == "cancelled"

    talk(command, "stops/cancelled", conversation, faultless=False)


def test_the_list_comes_in_pages(command: str, listed: str) -> None:
    async def conversation(mock: Connected) -> None:
        ids: list[str] = []
        sizes: list[int] = []
        cursor: str | None = None
        while not sizes or cursor is not None:
            page = await mock.agent.list_sessions(cursor=cursor)
            ids += [row.session_id for row in page.sessions]
            sizes.append(len(page.sessions))
            cursor = page.next_cursor
        assert sizes == [3, 3, 1]
        assert sorted(ids) == [f"sess_{number}" for number in range(7)]
        web = await mock.agent.list_sessions(cwd="/home/dev/web")
        assert [row.session_id for row in web.sessions] == ["sess_3"]

    talk(command, listed, conversation)


def test_an_invalid_cursor_is_an_error(command: str, listed: str) -> None:
    async def conversation(mock: Connected) -> None:
        with pytest.raises(RequestError) as refused:
            await mock.agent.list_sessions(cursor="made up")
        assert refused.value.code == -32602

    talk(command, listed, conversation, faultless=False)


def test_load_replays_resume_does_not_and_close_ends(command: str) -> None:
    async def conversation(mock: Connected) -> None:
        session = await mock.new()
        await mock.prompt(session, "say apples")
        await mock.agent.close_session(session_id=session)
        with pytest.raises(RequestError) as refused:
            await mock.prompt(session, "still there?")
        assert refused.value.code == -32002
        mock.client.heard.clear()
        await mock.agent.resume_session(cwd="/home/dev/project", session_id=session, mcp_servers=[])
        assert await mock.prompt(session, "say pears") == "end_turn"
        assert mock.client.text() == "pears"
        await mock.agent.close_session(session_id=session)
        mock.client.heard.clear()
        await mock.agent.load_session(cwd="/home/dev/project", session_id=session, mcp_servers=[])
        await mock.client.until("agent_message_chunk", 2)  # the SDK hands updates out in tasks of their own
        assert mock.client.text(kind="user_message_chunk") == "say applessay pears"
        assert mock.client.text() == "applespears"

    talk(command, "echo", conversation, faultless=False)


def test_loading_what_is_not_there_is_an_error(command: str, listed: str) -> None:
    async def conversation(mock: Connected) -> None:
        with pytest.raises(RequestError) as refused:
            await mock.agent.load_session(cwd="/home/dev/api", session_id="sess_99", mcp_servers=[])
        assert refused.value.code == -32002

    talk(command, listed, conversation, faultless=False)


def test_modes_and_options_are_set_and_the_script_sees_them(command: str, listed: str) -> None:
    async def conversation(mock: Connected) -> None:
        made = await mock.agent.new_session(cwd="/home/dev/api", mcp_servers=[])
        assert made.modes is not None
        assert made.modes.current_mode_id == "ask"
        await mock.prompt(made.session_id, "x")
        await mock.agent.set_session_mode(session_id=made.session_id, mode_id="code")
        await mock.prompt(made.session_id, "y")
        assert mock.client.text() == "asking about xcoding with y"
        answer = await mock.agent.set_config_option(config_id="model", session_id=made.session_id, value="deep")
        assert [(option.id, option.current_value) for option in answer.config_options] == [("model", "deep")]
        with pytest.raises(RequestError):
            await mock.agent.set_session_mode(session_id=made.session_id, mode_id="no such mode")

    talk(command, listed, conversation, faultless=False)


def test_every_kind_of_tool_call_arrives_whole(command: str) -> None:
    async def conversation(mock: Connected) -> None:
        assert await mock.prompt(await mock.new(), "show me") == "end_turn"
        calls = {what.tool_call_id: what for _, kind, what in mock.client.heard if kind == "tool_call"}
        assert {call.kind for call in calls.values() if call.kind is not None} >= {
            "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode"
        }  # fmt: skip
        status = {what.tool_call_id: what.status for _, kind, what in mock.client.heard if kind == "tool_call_update"}
        assert set(status) == set(calls)
        assert set(status.values()) == {"completed"}
        assert mock.client.text().endswith("That was all of them.")

    talk(command, "tools", conversation)


def test_files_are_asked_of_the_client(command: str, tmp_path: Path) -> None:
    path = tmp_path / "files.yaml"
    path.write_text(
        "name: files\nsummary: Reads and writes.\nturns:\n  - steps:\n"
        "      - {read: {path: notes.txt}}\n      - {write: {path: /home/dev/project/out.txt, content: done}}\n"
        "      - say: Both.\n",
        encoding="utf-8",
    )

    async def conversation(mock: Connected) -> None:
        assert await mock.prompt(await mock.new(), "go") == "end_turn"
        assert mock.client.files == ["/home/dev/project/notes.txt", "/home/dev/project/out.txt"]

    talk(command, str(path), conversation)


def test_an_unknown_method_is_answered_with_method_not_found(command: str) -> None:
    async def conversation(mock: Connected) -> None:
        with pytest.raises(RequestError) as refused:
            await mock.agent.ext_method("vendor/thing", {})
        assert refused.value.code == -32601

    talk(command, "hello", conversation, faultless=False)
