"""Misbehaving ACP clients over stdio: each does one thing wrong, and for the rest all that it has to."""

from __future__ import annotations

from typing import Any

from tests.clients.registry import breaks
from tests.clients.speaker import CWD, INFO, NOT_FOUND, Body, Json, Speaker, chosen

BARE = """
agent:
  capabilities: {load: false, list: false, resume: false, close: false, delete: false, additional_directories: false,
                 prompt: {image: false, audio: false, embedded_context: false}, mcp: {http: false, sse: false}}
sessions: {stored: [{id: old, cwd: /home/dev/project}]}
"""
"""An agent that has nothing but what every agent has."""

AUTH = "agent: {auth: {methods: [{id: key, name: Key}, {id: shell, name: Shell, type: terminal}]}}"

SETTINGS = """
agent:
  modes: [{id: ask, name: Ask}, {id: code, name: Code}]
  options:
    - {id: model, name: Model, type: select, value: a, choices: [{value: a, name: A}, {value: b, name: B}]}
    - {id: brave, name: Brave, type: boolean, value: false}
"""

MODE_TWICE = """
agent:
  modes: [{id: ask, name: Ask}, {id: code, name: Code}]
  options:
    - {id: mode, name: Mode, category: mode, type: select, value: ask,
       choices: [{value: ask, name: Ask}, {value: code, name: Code}]}
"""

LISTS = "sessions: {synthetic: {count: 60, cwds: [/home/dev/project]}, page_size: 10}"

ASKS = "turns: [{steps: [{tool: {id: t, name: edit, ask: true}}, {say: done}]}]"
READS = "turns: [{steps: [{read: {path: a.txt, limit: 2}}]}]"
WRITES = "turns: [{steps: [{write: {path: a.txt, content: x}}]}]"
RUNS = "turns: [{steps: [{terminal: {command: make, limit: 20}}]}]"
KILLS = "turns: [{steps: [{terminal: {command: make, kill_after: 1ms}}]}]"
TWO_RUN = """
turns:
  - steps:
      - together: [{terminal: {command: make}}, {terminal: {command: test}}]
"""
FORMS = """
turns:
  - steps:
      - elicit: {message: Which?, schema: {properties: {n: {type: integer}}, required: [n]}}
"""
PAGES = "turns: [{steps: [{elicit: {message: Look, url: 'https://example.com/'}}]}]"
OTHER_MODE = """
legality: violation
turns:
  - steps:
      - request:
          method: elicitation/create
          params: {mode: url, elicitationId: e, url: "https://example.com/", message: m}
"""
UNKNOWN_FIRST = "turns: [{steps: [{together: [{request: {method: _a}}, {read: b.txt}]}]}]"


def text(words: str = "hi") -> Json:
    return {"type": "text", "text": words}


async def content(client: Speaker, *blocks: Any) -> None:
    """Sends a prompt of these blocks in a new session."""
    session = await client.begin()
    await client.call("session/prompt", {"sessionId": session, "prompt": list(blocks)})


async def one_turn(client: Speaker, method: str, body: Body) -> None:
    """Plays a turn, with this answer to one method."""
    client.answers[method] = body
    await client.prompt(await client.begin())


# --- the beginning


@breaks("ACP-INIT-01", over="stdio")
async def makes_a_session_first(client: Speaker) -> None:
    await client.call("session/new", {"cwd": CWD, "mcpServers": []})
    await client.greet()


@breaks("ACP-INIT-02", over="stdio", scenario="faults: [{at: initialize, delay: 1s}]")
async def does_not_wait_for_initialize(client: Speaker) -> None:
    await client.ask("initialize", {"protocolVersion": 1, "clientCapabilities": {}, "clientInfo": INFO})
    await client.call("session/new", {"cwd": CWD, "mcpServers": []})


@breaks("ACP-INIT-03", over="stdio")
async def names_its_version_as_text(client: Speaker) -> None:
    await client.greet(protocolVersion="1")


@breaks("ACP-INIT-04", over="stdio")
async def does_not_say_who_it_is(client: Speaker) -> None:
    await client.call("initialize", {"protocolVersion": 1, "clientCapabilities": {}})


@breaks("ACP-INIT-05", over="stdio")
async def goes_on_with_a_later_version(client: Speaker) -> None:
    await client.greet(protocolVersion=0)
    await client.prompt(await client.new())


@breaks("ACP-AUTH-01", over="stdio", scenario=AUTH)
async def makes_up_a_way_to_log_in(client: Speaker) -> None:
    await client.greet()
    await client.call("authenticate", {"methodId": "magic"})


@breaks("ACP-AUTH-02", over="stdio", scenario=AUTH)
async def leaves_the_terminal_login_to_the_agent(client: Speaker) -> None:
    await client.greet(clientCapabilities={"auth": {"terminal": True}})
    await client.call("authenticate", {"methodId": "shell"})


@breaks("ACP-AUTH-03", over="stdio")
async def logs_out_where_there_is_no_login(client: Speaker) -> None:
    await client.greet()
    await client.call("logout")


@breaks("ACP-CAP-01", over="stdio", scenario=BARE)
async def loads_without_asking(client: Speaker) -> None:
    await client.greet()
    await client.call("session/load", {"sessionId": "old", "cwd": CWD, "mcpServers": []})


@breaks("ACP-CAP-02", over="stdio", scenario=BARE)
async def lists_without_asking(client: Speaker) -> None:
    await client.greet()
    await client.call("session/list")


@breaks("ACP-CAP-03", over="stdio", scenario=BARE)
async def resumes_without_asking(client: Speaker) -> None:
    await client.greet()
    await client.call("session/resume", {"sessionId": "old", "cwd": CWD, "mcpServers": []})


@breaks("ACP-CAP-04", over="stdio", scenario=BARE)
async def closes_without_asking(client: Speaker) -> None:
    await client.call("session/close", {"sessionId": await client.begin()})


@breaks("ACP-CAP-05", over="stdio", scenario=BARE)
async def deletes_without_asking(client: Speaker) -> None:
    await client.call("session/delete", {"sessionId": await client.begin()})


@breaks("ACP-CAP-06", over="stdio", scenario=BARE)
async def adds_folders_without_asking(client: Speaker) -> None:
    await client.greet()
    await client.call("session/new", {"cwd": CWD, "mcpServers": [], "additionalDirectories": ["/home/dev/lib"]})


@breaks("ACP-CAP-07", over="stdio", scenario=BARE)
async def names_servers_over_http_without_asking(client: Speaker) -> None:
    await client.greet()
    server = {"type": "http", "name": "s", "url": "http://localhost/", "headers": []}
    await client.call("session/new", {"cwd": CWD, "mcpServers": [server]})


@breaks("ACP-CAP-08", over="stdio", scenario=BARE)
async def names_servers_over_sse_without_asking(client: Speaker) -> None:
    await client.greet()
    server = {"type": "sse", "name": "s", "url": "http://localhost/", "headers": []}
    await client.call("session/new", {"cwd": CWD, "mcpServers": [server]})


@breaks("ACP-SESSION-01", over="stdio")
async def prompts_in_a_session_that_it_has_closed(client: Speaker) -> None:
    session = await client.begin()
    await client.call("session/close", {"sessionId": session})
    await client.prompt(session)


@breaks("ACP-METHOD-01", over="stdio")
async def invents_a_method(client: Speaker) -> None:
    await client.greet()
    await client.call("session/rename", {"sessionId": "x"})


@breaks("ACP-METHOD-02", over="stdio")
async def waits_for_an_answer_to_cancel(client: Speaker) -> None:
    session = await client.begin()
    await client.call("session/cancel", {"sessionId": session})


@breaks("ACP-METHOD-03", over="stdio")
async def prompts_without_an_id(client: Speaker) -> None:
    session = await client.begin()
    await client.notify("session/prompt", {"sessionId": session, "prompt": [text()]})


@breaks("ACP-METHOD-04", over="stdio")
async def counts_from_null(client: Speaker) -> None:
    await client.begin()
    await client.send({"id": None, "method": "session/list", "params": {}})


# --- params


async def sends(client: Speaker, method: str, params: Json) -> None:
    await client.begin()
    await client.call(method, params)


@breaks("ACP-PARAMS-01", over="stdio", scenario=AUTH)
async def authenticates_with_nothing(client: Speaker) -> None:
    await sends(client, "authenticate", {})


@breaks("ACP-PARAMS-02", over="stdio")
async def forgets_the_servers_of_a_new_session(client: Speaker) -> None:
    await sends(client, "session/new", {"cwd": CWD})


@breaks("ACP-PARAMS-03", over="stdio")
async def forgets_the_folder_of_a_loaded_session(client: Speaker) -> None:
    await sends(client, "session/load", {"sessionId": "s", "mcpServers": []})


@breaks("ACP-PARAMS-04", over="stdio")
async def resumes_nothing(client: Speaker) -> None:
    await sends(client, "session/resume", {"cwd": CWD, "mcpServers": []})


@breaks("ACP-PARAMS-05", over="stdio")
async def prompts_with_plain_text(client: Speaker) -> None:
    session = await client.begin()
    await client.call("session/prompt", {"sessionId": session, "prompt": "hi"})


@breaks("ACP-PARAMS-06", over="stdio")
async def cancels_nothing(client: Speaker) -> None:
    await client.begin()
    await client.notify("session/cancel", {})


@breaks("ACP-PARAMS-07", over="stdio")
async def closes_number_one(client: Speaker) -> None:
    await sends(client, "session/close", {"sessionId": 1})


@breaks("ACP-PARAMS-08", over="stdio")
async def deletes_a_list(client: Speaker) -> None:
    await sends(client, "session/delete", {"sessionId": ["s"]})


@breaks("ACP-PARAMS-09", over="stdio", scenario=SETTINGS)
async def sets_no_mode(client: Speaker) -> None:
    session = await client.begin()
    await client.call("session/set_mode", {"sessionId": session})


@breaks("ACP-PARAMS-10", over="stdio", scenario=SETTINGS)
async def sets_an_option_to_a_number(client: Speaker) -> None:
    session = await client.begin()
    await client.call("session/set_config_option", {"sessionId": session, "configId": "model", "value": 1})


@breaks("ACP-PARAMS-11", over="stdio")
async def takes_back_no_request(client: Speaker) -> None:
    await client.begin()
    await client.notify("$/cancel_request", {})


@breaks("ACP-PARAMS-12", over="stdio", scenario=LISTS)
async def asks_for_page_two(client: Speaker) -> None:
    await sends(client, "session/list", {"cursor": 2})


@breaks("ACP-MCP-01", over="stdio")
async def forgets_the_arguments_of_a_server(client: Speaker) -> None:
    await sends(client, "session/new", {"cwd": CWD, "mcpServers": [{"name": "s", "command": "/bin/s", "env": []}]})


@breaks("ACP-PATH-01", over="stdio")
async def works_in_a_relative_folder(client: Speaker) -> None:
    await sends(client, "session/new", {"cwd": "project", "mcpServers": []})


@breaks("ACP-PATH-02", over="stdio")
async def adds_a_relative_folder(client: Speaker) -> None:
    await sends(client, "session/new", {"cwd": CWD, "mcpServers": [], "additionalDirectories": ["../lib"]})


@breaks("ACP-PATH-03", over="stdio")
async def lists_a_relative_folder(client: Speaker) -> None:
    await sends(client, "session/list", {"cwd": "."})


@breaks("ACP-PATH-04", over="stdio")
async def finds_servers_on_its_path(client: Speaker) -> None:
    server = {"name": "s", "command": "npx", "args": ["server"], "env": []}
    await sends(client, "session/new", {"cwd": CWD, "mcpServers": [server]})


@breaks("ACP-META-01", over="stdio")
async def adds_a_member_of_its_own(client: Speaker) -> None:
    await sends(client, "session/new", {"cwd": CWD, "mcpServers": [], "theme": "dark"})


@breaks("ACP-META-02", over="stdio")
async def sends_a_list_for_meta(client: Speaker) -> None:
    await sends(client, "session/list", {"_meta": []})


@breaks("ACP-META-03", over="stdio")
async def traces_in_its_own_way(client: Speaker) -> None:
    await sends(client, "session/list", {"_meta": {"traceparent": "request 7"}})


# --- content


@breaks("ACP-CONTENT-01", over="stdio", scenario=BARE)
async def sends_an_image_to_a_blind_agent(client: Speaker) -> None:
    await content(client, {"type": "image", "data": "AAEC", "mimeType": "image/png"})


@breaks("ACP-CONTENT-02", over="stdio", scenario=BARE)
async def sends_a_sound_to_a_deaf_agent(client: Speaker) -> None:
    await content(client, {"type": "audio", "data": "AAEC", "mimeType": "audio/wav"})


@breaks("ACP-CONTENT-03", over="stdio", scenario=BARE)
async def embeds_what_the_agent_does_not_take(client: Speaker) -> None:
    await content(client, {"type": "resource", "resource": {"uri": "file:///a", "text": "a"}})


@breaks("ACP-CONTENT-04", over="stdio")
async def sends_a_video(client: Speaker) -> None:
    await content(client, text(), {"type": "video", "data": "AAEC", "mimeType": "video/mp4"})


@breaks("ACP-CONTENT-05", over="stdio")
async def sends_an_image_without_its_type(client: Speaker) -> None:
    await content(client, {"type": "image", "data": "AAEC"})


@breaks("ACP-CONTENT-06", over="stdio")
async def sends_a_data_url(client: Speaker) -> None:
    await content(client, {"type": "image", "data": "data:image/png;base64,AAEC", "mimeType": "image/png"})


# --- lists


async def cursor(client: Speaker, **params: Any) -> str:
    reply = await client.call("session/list", params)
    found: str = reply["result"]["nextCursor"]
    return found


@breaks("ACP-CURSOR-01", over="stdio", scenario=LISTS)
async def makes_up_a_cursor(client: Speaker) -> None:
    await client.greet()
    await client.call("session/list", {"cursor": await cursor(client) + "x"})


@breaks("ACP-CURSOR-02", over="stdio", scenario=LISTS)
async def takes_a_cursor_to_another_list(client: Speaker) -> None:
    await client.greet()
    await client.call("session/list", {"cursor": await cursor(client, cwd=CWD)})


# --- modes and options


@breaks("ACP-MODE-01", over="stdio", scenario=SETTINGS)
async def sets_a_mode_that_there_is_not(client: Speaker) -> None:
    session = await client.begin()
    await client.call("session/set_mode", {"sessionId": session, "modeId": "architect"})


async def sets(client: Speaker, id: str, value: Any, **more: Any) -> None:
    session = await client.begin()
    await client.call("session/set_config_option", {"sessionId": session, "configId": id, "value": value, **more})


@breaks("ACP-CONFIG-01", over="stdio", scenario=SETTINGS)
async def sets_an_option_that_there_is_not(client: Speaker) -> None:
    await sets(client, "colour", "red")


@breaks("ACP-CONFIG-02", over="stdio", scenario=SETTINGS)
async def sets_a_value_that_there_is_not(client: Speaker) -> None:
    await sets(client, "model", "c")


@breaks("ACP-CONFIG-03", over="stdio", scenario=SETTINGS)
async def sets_a_boolean_without_its_type(client: Speaker) -> None:
    await sets(client, "brave", True)


@breaks("ACP-CONFIG-04", over="stdio", scenario=MODE_TWICE)
async def sets_the_mode_the_old_way(client: Speaker) -> None:
    session = await client.begin()
    await client.call("session/set_mode", {"sessionId": session, "modeId": "code"})


# --- answers


@breaks("ACP-ANSWER-01", over="stdio", scenario=ASKS)
async def answers_what_nobody_asked(client: Speaker) -> None:
    await client.begin()
    await client.send({"id": 99, "result": {}})


@breaks("ACP-ANSWER-02", over="stdio", scenario=READS)
async def answers_twice(client: Speaker) -> None:
    body = {"result": {"content": "a"}}
    await one_turn(client, "fs/read_text_file", [body, body])


@breaks("ACP-ANSWER-03", over="stdio", scenario=UNKNOWN_FIRST)
async def passes_over_what_it_does_not_know(client: Speaker) -> None:
    client.answers["_a"] = None
    await client.say(await client.begin())
    await client.asked("fs/read_text_file")


def unknown(method: str) -> Any:
    async def play(client: Speaker) -> None:
        await one_turn(client, method, NOT_FOUND)

    return play


breaks("ACP-CLIENT-01", over="stdio", scenario=ASKS)(unknown("session/request_permission"))
breaks("ACP-CLIENT-02", over="stdio", scenario=READS)(unknown("fs/read_text_file"))
breaks("ACP-CLIENT-03", over="stdio", scenario=WRITES)(unknown("fs/write_text_file"))
breaks("ACP-CLIENT-04", over="stdio", scenario=RUNS)(unknown("terminal/create"))
breaks("ACP-CLIENT-05", over="stdio", scenario=FORMS)(unknown("elicitation/create"))
breaks("ACP-CLIENT-06", over="stdio", scenario=PAGES)(unknown("elicitation/create"))


def misshapen(method: str, result: Any) -> Any:
    async def play(client: Speaker) -> None:
        await one_turn(client, method, {"result": result})

    return play


for _rule, _scenario, _method, _result in (
    ("ACP-RESULT-01", ASKS, "session/request_permission", {"outcome": "allow"}),
    ("ACP-RESULT-02", READS, "fs/read_text_file", {"text": "a"}),
    ("ACP-RESULT-03", WRITES, "fs/write_text_file", True),
    ("ACP-RESULT-04", RUNS, "terminal/create", {"id": "t"}),
    ("ACP-RESULT-05", RUNS, "terminal/output", {"output": "ok"}),
    ("ACP-RESULT-06", RUNS, "terminal/wait_for_exit", 0),
    ("ACP-RESULT-08", RUNS, "terminal/release", []),
    ("ACP-RESULT-09", FORMS, "elicitation/create", {"accepted": True}),
):
    breaks(_rule, over="stdio", scenario=_scenario)(misshapen(_method, _result))


@breaks("ACP-RESULT-07", over="stdio", scenario=KILLS)
async def says_that_it_has_killed(client: Speaker) -> None:
    client.answers["terminal/wait_for_exit"] = None
    client.answers["terminal/kill"] = {"result": "killed"}
    turn = await client.say(await client.begin())
    asked = await client.asked("terminal/wait_for_exit")
    await client.asked("terminal/kill")
    await client.answer(asked, {"result": {"exitCode": None, "signal": "SIGKILL"}})
    await client.reply(turn)


@breaks("ACP-CANCEL-01", over="stdio", scenario=ASKS)
async def allows_what_it_has_cancelled(client: Speaker) -> None:
    client.answers["session/request_permission"] = None
    turn = await client.say(session := await client.begin())
    asked = await client.asked("session/request_permission")
    await client.notify("session/cancel", {"sessionId": session})
    await client.answer(asked, chosen(asked["params"]["options"][0]["optionId"]))
    await client.reply(turn)


@breaks("ACP-PERMISSION-01", over="stdio", scenario=ASKS)
async def chooses_what_was_not_offered(client: Speaker) -> None:
    await one_turn(client, "session/request_permission", chosen("yes"))


@breaks("ACP-FILE-01", over="stdio", scenario=READS)
async def gives_the_whole_file(client: Speaker) -> None:
    await one_turn(client, "fs/read_text_file", {"result": {"content": "one\ntwo\nthree\n"}})


@breaks("ACP-TERMINAL-01", over="stdio", scenario=RUNS)
async def gives_all_the_output(client: Speaker) -> None:
    output = {"result": {"output": "x" * 21, "truncated": False, "exitStatus": {"exitCode": 0}}}
    await one_turn(client, "terminal/output", output)


@breaks("ACP-TERMINAL-02", over="stdio", scenario=TWO_RUN)
async def has_one_terminal_for_all(client: Speaker) -> None:
    waiting: list[Json] = []

    def create(asked: Json) -> Body:
        return {"result": {"terminalId": "the"}}

    client.answers["terminal/create"] = create
    client.answers["terminal/wait_for_exit"] = lambda asked: waiting.append(asked)
    turn = await client.say(await client.begin())
    while len(waiting) < 2:
        await client.read()
    for asked in waiting:
        await client.answer(asked, {"result": {"exitCode": 0}})
    await client.reply(turn)


@breaks("ACP-ELICIT-01", over="stdio", scenario=FORMS)
async def fills_in_a_form_wrongly(client: Speaker) -> None:
    await one_turn(client, "elicitation/create", {"result": {"action": "accept", "content": {"n": "many"}}})


@breaks("ACP-ELICIT-02", over="stdio", scenario=OTHER_MODE)
async def shows_a_page_though_it_has_only_forms(client: Speaker) -> None:
    client.able = {"elicitation": {"form": {}}}
    await one_turn(client, "elicitation/create", {"result": {"action": "cancel"}})


# --- bytes


@breaks("ACP-FRAME-01", over="stdio")
async def writes_latin_1(client: Speaker) -> None:
    await client.begin()
    await client.write('{"jsonrpc": "2.0", "id": 9, "method": "_caf\xe9"}\n'.encode("latin-1"))


@breaks("ACP-FRAME-02", over="stdio")
async def prints_prettily(client: Speaker) -> None:
    await client.begin()
    await client.write(b'{\n"jsonrpc": "2.0", "method": "_hello"}\n')


@breaks("ACP-FRAME-03", over="stdio")
async def forgets_the_version_of_json_rpc(client: Speaker) -> None:
    await client.begin()
    await client.write(b'{"id": 9, "method": "session/list", "params": {}}\n')


@breaks("ACP-FRAME-04", over="stdio")
async def sends_a_batch(client: Speaker) -> None:
    await client.begin()
    await client.write(b'[{"jsonrpc": "2.0", "id": 9, "method": "session/list", "params": {}}]\n')
