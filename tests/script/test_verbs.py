"""What each verb makes of itself over ACP: the messages that leave, in order."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness import CANCELLED, CWD, Error, Json, Theatre, played, select, stop_reason, updates, words


def turn(steps: str, rest: str = "") -> str:
    """A scenario of one turn, its steps in YAML's flow style, without a title of its own."""
    return f"{{turns: [{{steps: [{steps}]}}], sessions: {{auto_title: null}}, {rest}}}"


def text(value: str) -> Json:
    return {"type": "text", "text": value}


def chunk(kind: str, content: Any, id: str | None = "msg_1", **more: Any) -> Json:
    body = {"sessionUpdate": f"{kind}_chunk", "content": text(content) if isinstance(content, str) else content, **more}
    return body | ({"messageId": id} if id is not None else {})


def agent(content: Any, id: str | None = "msg_1", **more: Any) -> Json:
    return chunk("agent_message", content, id, **more)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ("say: Hello", [agent("Hello")]),
        ("say: 18", [agent("18")]),
        ('say: ""', [agent("")]),
        ("think: Hm", [chunk("agent_thought", "Hm")]),
        ("user: Hi", [chunk("user_message", "Hi")]),
        ("say: [a, b]", [agent("a"), agent("b")]),
        ("{say: a}, {say: b}", [agent("a", "msg_1"), agent("b", "msg_2")]),
        ("{say: a}, {think: t}, {say: b, join: true}", [agent("a"), chunk("agent_thought", "t", "msg_2"), agent("b")]),
        ("{say: a, message_id: m9}, {say: b, message_id: null}", [agent("a", "m9"), agent("b", None)]),
        ("{say: a, meta: {k: 1}}", [agent("a", _meta={"k": 1})]),
        (
            "say: [{link: 'https://x.org/a.md'}, {resource: {uri: 'file:///a', text: t, mime: text/plain}}]",
            [
                agent({"type": "resource_link", "uri": "https://x.org/a.md", "name": "a.md"}),
                agent({"type": "resource", "resource": {"uri": "file:///a", "text": "t", "mimeType": "text/plain"}}),
            ],
        ),
        (
            "{say: one two three, pace: {chunk: word}}",
            [agent("one "), agent("two "), agent("three")],
        ),
        ("{say: abcde, pace: {chunk: 2, rate: 10/s}}", [agent("ab"), agent("cd"), agent("e")]),
        ('{say: "a\\nb\\n", pace: {chunk: line}}', [agent("a\n"), agent("b\n")]),
        (
            "plan: [{content: a, status: in_progress, priority: high}, {content: b}]",
            [
                {
                    "sessionUpdate": "plan",
                    "entries": [
                        {"content": "a", "status": "in_progress", "priority": "high"},
                        {"content": "b", "status": "pending", "priority": "medium"},
                    ],
                }
            ],
        ),
        ("plan: []", [{"sessionUpdate": "plan", "entries": []}]),
        (
            "info: {title: T, updated_at: '2026-01-01T00:00:00Z', meta: {a: null}}",
            [
                {
                    "sessionUpdate": "session_info_update",
                    "title": "T",
                    "updatedAt": "2026-01-01T00:00:00Z",
                    "_meta": {"a": None},
                }
            ],
        ),
        ("info: {title: null}", [{"sessionUpdate": "session_info_update", "title": None}]),
        (
            "usage: {used: 5, size: 10, cost: {amount: 0.5, currency: EUR}}",
            [{"sessionUpdate": "usage_update", "used": 5, "size": 10, "cost": {"amount": 0.5, "currency": "EUR"}}],
        ),
        (
            "commands: [{name: plan, description: Plan, hint: what}, {name: b, description: B}]",
            [
                {
                    "sessionUpdate": "available_commands_update",
                    "availableCommands": [
                        {"name": "plan", "description": "Plan", "input": {"hint": "what"}},
                        {"name": "b", "description": "B"},
                    ],
                }
            ],
        ),
        ("mode: code", [{"sessionUpdate": "current_mode_update", "currentModeId": "code"}]),
        (
            "notice: {title: Busy, severity: warning}",
            [{"sessionUpdate": "notice", "title": "Busy", "severity": "warning"}],
        ),
        (
            "{compaction: {id: c, status: in_progress}}, {compaction: {id: c, chunk: piece}}, "
            "{compaction: {id: c, status: completed, summary: all}}",
            [
                {"sessionUpdate": "compaction_update", "compactionId": "c", "status": "in_progress"},
                {"sessionUpdate": "compaction_summary_chunk", "compactionId": "c", "content": text("piece")},
                {
                    "sessionUpdate": "compaction_update",
                    "compactionId": "c",
                    "status": "completed",
                    "summary": [text("all")],
                },
            ],
        ),
        (
            "update: {sessionUpdate: plan, entries: []}",
            [{"sessionUpdate": "plan", "entries": []}],
        ),
        (
            "{tool_start: {id: t, title: Read, kind: read, status: in_progress, locations: [{path: /a, line: 3}]}}, "
            "{tool_update: {id: t, status: completed, content: [done, {diff: {path: /a, old: x, new: y}}, "
            "{terminal: term}], output: {n: 1}}}",
            [
                {
                    "sessionUpdate": "tool_call",
                    "toolCallId": "t",
                    "title": "Read",
                    "kind": "read",
                    "status": "in_progress",
                    "locations": [{"path": "/a", "line": 3}],
                },
                {
                    "sessionUpdate": "tool_call_update",
                    "toolCallId": "t",
                    "status": "completed",
                    "content": [
                        {"type": "content", "content": text("done")},
                        {"type": "diff", "path": "/a", "oldText": "x", "newText": "y"},
                        {"type": "terminal", "terminalId": "term"},
                    ],
                    "rawOutput": {"n": 1},
                },
            ],
        ),
        (
            "{tool_start: {id: t, title: T}}, {tool_update: {id: t, content: null, title: null}}",
            [
                {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "T"},
                {"sessionUpdate": "tool_call_update", "toolCallId": "t", "content": None, "title": None},
            ],
        ),
        (
            "tool: {name: grep, kind: search, title: Looking, input: {q: 1}, output: found}",
            [
                {
                    "sessionUpdate": "tool_call",
                    "toolCallId": "call_1",
                    "name": "grep",
                    "kind": "search",
                    "title": "Looking",
                    "status": "pending",
                    "rawInput": {"q": 1},
                },
                {
                    "sessionUpdate": "tool_call_update",
                    "toolCallId": "call_1",
                    "status": "completed",
                    "content": [{"type": "content", "content": text("found")}],
                    "rawOutput": "found",
                },
            ],
        ),
        (
            "tool: {name: grep, id: mine, takes: 800ms, status: failed}",
            [
                {
                    "sessionUpdate": "tool_call",
                    "toolCallId": "mine",
                    "name": "grep",
                    "title": "grep",
                    "status": "pending",
                },
                {"sessionUpdate": "tool_call_update", "toolCallId": "mine", "status": "in_progress"},
                {"sessionUpdate": "tool_call_update", "toolCallId": "mine", "status": "failed"},
            ],
        ),
        ("together: [{say: a}, [{say: b}, {say: c}]]", [agent("a"), agent("b", "msg_2"), agent("c", "msg_3")]),
        (
            "together: [[{wait: 2s}, {say: late}], [{wait: 1s}, {say: early}]]",
            [agent("early"), agent("late", "msg_2")],
        ),
        (
            "repeat: {times: 3, every: 1s, steps: [{say: tick, join: true}]}",
            [agent("tick"), agent("tick"), agent("tick")],
        ),
        ("{say: never, when: {prompt: other}}, {say: now, when: {prompt: G*}}", [agent("now")]),
        ("{wait: 3h}, {say: x, after: 2s}", [agent("x")]),
    ],
)
def test_a_verb_makes_these_updates(steps: str, expected: list[Json]) -> None:
    messages = played(turn(steps, "agent: {modes: [{id: ask, name: Ask}, {id: code, name: Code}]}"))
    assert updates(messages) == expected
    assert stop_reason(messages) == "end_turn"


def test_a_step_that_shows_an_image_sends_its_bytes(tmp_path: Any) -> None:
    (tmp_path / "dot.png").write_bytes(b"\x89PNG")
    [update] = updates(played(turn(f"say: {{image: '{tmp_path}/dot.png'}}")))
    assert update["content"] == {"type": "image", "data": "iVBORw==", "mimeType": "image/png"}


def test_output_of_a_paced_tool_grows() -> None:
    messages = played(turn("{tool: {name: sh, output: one two three}, pace: {chunk: word, rate: 5/s}}"))
    shown = [update["content"][0]["content"]["text"] for update in updates(messages) if "content" in update]
    assert shown == ["one ", "one two ", "one two three"]


def test_an_option_step_changes_the_option_and_shows_the_whole_set() -> None:
    options = (
        "agent: {options: [{id: model, name: Model, type: select, value: fast, "
        "choices: [{value: fast, name: Fast}, {value: smart, name: Smart}]}, "
        "{id: brave, name: Brave, type: boolean, value: false}, {id: lang, name: L, type: text, value: English}]}"
    )
    theatre = Theatre(turn("option: {id: model, value: smart}", options))
    client = theatre.client()
    client.prompt(client.new())
    [update] = updates(client.sent)
    assert [(option["id"], option["currentValue"]) for option in update["configOptions"]] == [
        ("model", "smart"),
        ("brave", False),
    ]


def test_surfaces_that_the_client_did_not_advertise_are_skipped_and_noted() -> None:
    theatre = Theatre(turn("{notice: {title: x}}, {compaction: {id: c, status: completed}}, {say: on}"))
    client = theatre.client(capabilities={})
    client.prompt(client.new())
    assert [update["sessionUpdate"] for update in updates(client.sent)] == ["agent_message_chunk"]
    assert len(theatre.notes.of("skipped")) == 2


def test_message_ids_can_be_off() -> None:
    assert updates(played(turn("say: [a, b]", "agent: {message_ids: false}"))) == [agent("a", None), agent("b", None)]


# --- raw


def test_notify_sends_any_notification_with_the_session_added() -> None:
    [note, _] = played(turn("notify: {method: _acme/tick, params: {n: 1}}"))
    assert note["method"] == "_acme/tick"
    assert note["params"]["n"] == 1
    assert note["params"]["sessionId"].startswith("sess_")
    assert "id" not in note


def test_send_sends_an_object_or_a_text_as_it_is() -> None:
    theatre = Theatre(
        "legality: violation\n"
        "turns: [{steps: [{send: {jsonrpc: '2.0', method: _x}}, {send: '{\"a\":  1}'}]}]\nsessions: {auto_title: null}"
    )
    client = theatre.client(judge=False)
    session = client.new()
    client.prompt(session, run=False)
    theatre.run()
    assert client.tray.texts[:2] == [b'{"jsonrpc":"2.0","method":"_x"}', b'{"a":  1}']


@pytest.mark.parametrize(
    ("step", "life"),
    [
        ("stderr: oh no", {"stderr": "oh no"}),
        ("disconnect: reset", {"cut": "reset"}),
        ("exit: {code: 3}", {"exit": 3}),
        ("exit: {signal: KILL}", {"exit": -9}),
        ("stall: {write: 5s}", {"stall_write": 5.0}),
    ],
)
def test_steps_about_the_connection_happen_behind_what_was_said(step: str, life: Json) -> None:
    theatre = Theatre(turn(f"{{say: a}}, {{{step}}}", "legality: violation"))
    client = theatre.client()
    client.prompt(client.new())
    [done] = client.tray.lives
    for name, value in life.items():
        found = getattr(done, name)
        assert (found.how if name == "cut" else found) == value


# --- ends


@pytest.mark.parametrize("reason", ["end_turn", "max_tokens", "max_turn_requests", "refusal"])
def test_a_turn_stops_with_each_stop_reason(reason: str) -> None:
    assert stop_reason(played(turn(f"stop: {reason}"))) == reason


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("overloaded", {"code": -32603, "message": "Overloaded", "data": {"reason": "overloaded"}}),
        ("auth_required", {"code": -32000, "message": "Authentication required"}),
        ("{code: -32042, message: no, data: [1]}", {"code": -32042, "message": "no", "data": [1]}),
    ],
)
def test_a_turn_fails_with_a_named_or_any_error(error: str, expected: Json) -> None:
    [reply] = played(turn(f"{{fail: {error}}}, {{say: never}}"))
    assert reply["error"] == expected


@pytest.mark.parametrize(
    "steps",
    [
        "together: [[{wait: 1s}, {say: a}, {stop: refusal}, {say: b}], [{wait: 2s}, {say: never}]]",
        "repeat: {steps: [{wait: 1s}, {say: a}, {stop: refusal}, {say: b}]}",
        "{request: {method: _ask}, then: [{steps: [{say: a}, {stop: refusal}, {say: b}]}]}, {say: never}",
        "together: [[{repeat: {times: 2, steps: [{say: a}, {stop: refusal}, {say: b}]}}, {say: never}]]",
    ],
)
def test_stop_ends_the_turn_from_any_depth_and_only_its_own_list_goes_on(steps: str) -> None:
    messages = played(turn(steps + ", {say: never}" * (not steps.endswith("never}"))), ask={})
    order = [
        message["result"]["stopReason"] if "result" in message else words([message])
        for message in messages
        if message["jsonrpc"] and message.get("method") != "_ask"
    ]
    assert order == ["a", "refusal", "b"]


def test_a_turn_that_hangs_has_no_reply() -> None:
    theatre = Theatre(turn("{say: a}, {hang: true}, {say: never}"))
    client = theatre.client()
    id = client.prompt(client.new())
    assert words(client.sent) == "a"
    assert client.reply_to(id) is None
    assert theatre.agent.busy


# --- behind the reply


def test_steps_behind_stop_play_after_the_reply_and_are_not_running() -> None:
    messages = played(
        turn(
            "{say: a}, {stop: end_turn}, {after: 2s, say: never, when: {running: true}}, "
            "{say: b, when: {running: false, last_stop: end_turn}}"
        )
    )
    assert [words([message]) or "reply" for message in messages] == ["a", "reply", "b"]


def test_later_prompts_do_not_end_steps_behind_stop_and_closing_does() -> None:
    steps = "{stop: end_turn}, {repeat: {times: 5, every: 1s, steps: [{say: tick, join: true}]}}"
    theatre = Theatre(turn(steps))
    client = theatre.client()
    session = client.new()
    client.request("session/prompt", {"sessionId": session, "prompt": [text("one")]})
    theatre.run(until=1.5)
    client.read()
    assert words(client.sent) == "tick" * 2
    client.request("session/prompt", {"sessionId": session, "prompt": [text("two")]})
    theatre.run(until=1.7)
    client.read()
    assert words(client.sent) == "tick" * 3
    client.request("session/close", {"sessionId": session})
    theatre.run()
    client.read()
    assert words(client.sent) == "tick" * 3
    assert not theatre.agent.playing


# --- questions


def test_a_tool_that_asks_waits_for_the_answer_and_works_once_it_is_granted() -> None:
    messages = played(turn("tool: {name: rm, input: {p: 1}, ask: true, output: gone}"), permission=select("allow_once"))
    assert [message.get("method", "reply") for message in messages] == [
        "session/update",
        "session/request_permission",
        "session/update",
        "session/update",
        "reply",
    ]
    asked = messages[1]["params"]
    assert asked["toolCall"]["toolCallId"] == "call_1"
    assert [(option["optionId"], option["kind"]) for option in asked["options"]] == [
        ("allow_once", "allow_once"),
        ("reject_once", "reject_once"),
    ]
    assert [update["status"] for update in updates(messages)] == ["pending", "in_progress", "completed"]


def test_a_denied_tool_fails_and_the_steps_go_on() -> None:
    messages = played(turn("{tool: {name: rm, ask: true}}, {say: on}"), permission=select("reject_once"))
    assert [update.get("status") for update in updates(messages)] == ["pending", "failed", None]
    assert (words(messages), stop_reason(messages)) == ("on", "end_turn")


def test_an_option_that_was_not_offered_is_no_grant() -> None:
    messages = played(turn("{tool: {name: rm, ask: true}}"), permission=select("allow_always"))
    assert [update.get("status") for update in updates(messages)] == ["pending", "failed"]


def test_a_cancelled_permission_ends_the_turn() -> None:
    """The client's answer may overtake its own `session/cancel`."""
    messages = played(turn("{tool: {name: rm, ask: true}}, {say: never}"), permission=CANCELLED)
    assert [update.get("status") for update in updates(messages)] == ["pending", "failed"]
    assert stop_reason(messages) == "cancelled"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (select("allow_once"), "yes"),
        (select("later"), "later"),
        (select("reject_once"), "no"),
        (CANCELLED, "cancelled"),
        (Error(), "error"),
        ({"outcome": {"outcome": "selected", "optionId": 7}}, "error"),
    ],
)
def test_then_takes_the_first_branch_that_fits_the_answer(answer: Any, said: str) -> None:
    options = "[{id: allow_once}, {id: later, name: Later, kind: reject_once}, {id: reject_once}]"
    messages = played(
        turn(
            f"{{ask: {{title: Sure?, options: {options}}}, "
            "then: [{when: {outcome: later}, steps: [{say: later}]}, "
            "{when: {outcome: granted}, steps: [{say: 'yes'}]}, {when: {outcome: denied}, steps: [{say: 'no'}]},"
            "{when: {outcome: cancelled}, steps: [{say: cancelled}]}, {steps: [{say: error}]}]}"
        ),
        permission=answer,
    )
    assert words(messages) == said
    assert stop_reason(messages) == "end_turn"


def test_an_ask_about_a_known_tool_call_names_it() -> None:
    messages = played(
        turn("{tool_start: {id: t, title: Read, name: cat}}, {ask: {tool: t, content: [why]}}"),
        permission=select("allow_once"),
    )
    call = messages[1]["params"]["toolCall"]
    assert call == {
        "toolCallId": "t",
        "name": "cat",
        "content": [{"type": "content", "content": text("why")}],
    }


def test_files_are_read_and_written_through_the_client_inside_the_session() -> None:
    messages = played(
        turn(
            "{read: {path: src/a.py, line: 2, limit: 9}, save: {body: /result/content}},"
            f"{{write: {{path: {CWD}/sub/../b.txt, content: '${{saved.body}}!'}}}}"
        ),
        read={"content": "hello"},
        write={},
    )
    assert messages[0]["params"]["path"] == f"{CWD}/src/a.py"
    assert (messages[0]["params"]["line"], messages[0]["params"]["limit"]) == (2, 9)
    assert messages[1]["params"]["path"] in (f"{CWD}/b.txt", f"{CWD}/sub/../b.txt")
    assert messages[1]["params"]["content"] == "hello!"
    assert stop_reason(messages) == "end_turn"


@pytest.mark.parametrize("path", ["/etc/passwd", "../other/a", f"{CWD}/../x", f"{CWD}-two/a"])
def test_no_file_outside_of_the_session_is_asked_for_but_in_a_violation(path: str) -> None:
    step = f"{{read: {{path: '{path}'}}, otherwise: [{{say: no}}]}}"
    assert words(played(turn(step))) == "no"
    [asked, *_] = played(turn(step, "legality: violation"))
    assert asked["method"] == "fs/read_text_file"


def test_forms_and_pages_are_shown_to_the_user() -> None:
    messages = played(
        turn(
            "{elicit: {message: Which?, schema: {properties: {b: {type: string}}}}}, "
            "{elicit: {message: Go, url: 'https://x'}}"
        ),
        elicit={"action": "accept", "content": {"b": "main"}},
    )
    assert messages[0]["params"]["mode"] == "form"
    assert messages[0]["params"]["requestedSchema"] == {"type": "object", "properties": {"b": {"type": "string"}}}
    assert (messages[1]["params"]["mode"], messages[1]["params"]["url"]) == ("url", "https://x")


@pytest.mark.parametrize(
    "step",
    [
        "read: {path: a}",
        "write: {path: a, content: b}",
        "elicit: {message: m, schema: {}}",
        "elicit: {message: m, url: 'https://x'}",
    ],
)
def test_a_client_that_cannot_is_not_asked(step: str) -> None:
    theatre = Theatre(turn(f"{{{step}, otherwise: [{{say: instead}}], then: [{{steps: [{{say: never}}]}}]}}"))
    client = theatre.client(capabilities={})
    client.prompt(client.new())
    assert words(client.sent) == "instead"
    assert all("method" not in message or "id" not in message for message in client.sent)


def test_request_waits_for_any_answer_and_text_is_matched_over_the_result() -> None:
    steps = (
        "{request: {method: _ask, params: {n: 1}}, then: [{when: {text: '*five*'}, steps: [{say: five}]}, "
        "{when: {result: {/n: 6}}, steps: [{say: six}]}, {when: {outcome: error}, steps: [{say: error}]}]}"
    )
    for answer, said in (({"a": "five"}, "five"), ({"n": 6}, "six"), (Error(-1, "x"), "error"), ({}, "")):
        messages = played(turn(steps), ask=answer)
        assert messages[0]["method"] == "_ask"
        assert messages[0]["params"]["n"] == 1
        assert messages[0]["params"]["sessionId"].startswith("sess_")
        assert words(messages) == said


def test_an_error_answer_without_then_lets_the_steps_go_on() -> None:
    messages = played(turn("{read: {path: a}}, {say: on}"), read=Error())
    assert (words(messages), stop_reason(messages)) == ("on", "end_turn")


def test_wait_for_goes_on_with_the_clients_call() -> None:
    theatre = Theatre(
        turn(
            "{wait_for: {method: session/set_mode}, save: {m: /params/modeId}}, {say: 'mode ${saved.m}'}",
            "agent: {modes: [{id: ask, name: Ask}, {id: code, name: Code}]}",
        )
    )
    client = theatre.client()
    session, other = client.new(), client.new()
    client.prompt(session)
    client.call("session/set_mode", {"sessionId": other, "modeId": "code"})
    assert words(client.sent) == ""
    client.call("session/set_mode", {"sessionId": session, "modeId": "code"})
    assert words(client.sent) == "mode code"


def test_wait_for_goes_on_without_the_call_after_its_time_out() -> None:
    steps = (
        "{wait_for: {method: session/cancel, timeout: 5s}, then: [{when: {outcome: timeout}, steps: [{say: late}]}]}"
    )
    theatre = Theatre(turn(steps))
    client = theatre.client()
    client.prompt(client.new())
    assert words(client.sent) == "late"
    assert theatre.now == pytest.approx(5.0)


def test_nobody_listens_any_more_once_the_turn_is_over() -> None:
    theatre = Theatre(turn("together: [{wait_for: {method: _x}}, {stop: end_turn}]"))
    client = theatre.client()
    client.prompt(client.new())
    assert not theatre.agent.listeners.waiting


# --- placeholders and saving


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("say: '${prompt} in ${session.cwd}, turn ${turn}'", f"weather Osaka in {CWD}, turn 1"),
        ("say: '$${prompt}'", "${prompt}"),
        ("say: '${match.1} ${match.where}'", "Osaka Osaka"),
        ("say: '${now}'", "2026-01-15T09:00:00"),
        ("say: '${now.http+2s}'", "Thu, 15 Jan 2026 09:00:02 GMT"),
        ("say: '${request.id}'", "102"),
    ],
)
def test_placeholders_stand_for(step: str, said: str) -> None:
    scenario = (
        "{clock: {now: '2026-01-15T09:00:00Z'}, sessions: {auto_title: null}, "
        f"turns: [{{when: {{prompt: '/weather (?P<where>.+)/'}}, steps: [{{{step}}}]}}]}}"
    )
    client = Theatre(scenario).client()
    session = client.new()
    client.request("session/prompt", {"sessionId": session, "prompt": [text("weather Osaka")]}, id=102)
    client.run()
    assert words(client.sent).startswith(said)


def test_a_value_that_is_one_placeholder_keeps_its_type() -> None:
    messages = played(turn("{notify: {method: _x, params: {n: '${turn}', s: '#${turn}', all: ['${turn}']}}}"))
    assert messages[0]["params"]["n"] == 1
    assert messages[0]["params"]["s"] == "#1"
    assert messages[0]["params"]["all"] == [1]


def test_where_text_is_wanted_a_placeholder_becomes_text() -> None:
    messages = played(
        turn(
            "{say: '${turn}'}, {info: {title: '${turn}', meta: {n: '${turn}'}}}, {plan: [{content: '${turn}'}]}, "
            "{tool: {name: '${turn}', input: {n: '${turn}'}, content: ['${turn}']}}, "
            "{notice: {title: '${turn}'}}, {tool_start: {id: '${turn}', title: t}}"
        )
    )
    assert words(messages) == "1"
    shown = {update["sessionUpdate"]: update for update in updates(messages)}
    assert (shown["session_info_update"]["title"], shown["session_info_update"]["_meta"]) == ("1", {"n": 1})
    assert shown["plan"]["entries"][0]["content"] == "1"
    assert shown["notice"]["title"] == "1"
    assert shown["tool_call"]["toolCallId"] == "1"
    assert shown["tool_call_update"]["content"][0]["content"] == text("1")


def test_an_unset_name_skips_the_step_and_makes_a_condition_false_and_is_noted() -> None:
    theatre = Theatre(
        turn(
            "{say: '${saved.x}'}, {say: never, when: {mode: '${saved.x}'}}, {info: {title: '${session.title}'}}, "
            "{say: on}, {request: {method: _ask}, save: {x: /result}}"
        )
    )
    client = theatre.client()
    client.prompt(client.new())
    assert words(client.sent) == "on"
    assert len(updates(client.sent)) == 1
    assert [note["verb"] for note in theatre.notes.of("skipped")] == ["say", "info"]
    assert len(theatre.notes.of("when_false")) == 1


def test_a_turn_saves_from_the_prompt_for_the_whole_session() -> None:
    scenario = (
        "turns: [{when: {turn: 1}, save: {first: /params/prompt/0/text}, steps: [{say: one}]}, "
        "{steps: [{say: 'first was ${saved.first}'}]}]"
    )
    client = Theatre(scenario).client()
    session = client.new()
    client.prompt(session, "apple")
    client.prompt(session, "pear")
    assert words(client.sent) == "onefirst was apple"


def test_fakes_are_the_same_in_every_run_of_a_seed() -> None:
    said = {words(played(turn("say: '${fake.title} by ${fake.name}'", "seed: 3"))) for _ in range(3)}
    assert len(said) == 1
    assert said != {words(played(turn("say: '${fake.title} by ${fake.name}'", "seed: 4")))}
