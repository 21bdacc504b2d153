"""Titles, times and `_meta` as they change, what is scheduled, and the scenarios that show it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from mockagent.scenario.library import open_scenario
from mockagent.scenario.stretch import stretched
from tests.harness import CWD, Client, Json, Theatre, updates, words


def client_of(scenario: Any) -> Client:
    client = Theatre(scenario).client()
    client.initialize()
    return client


def infos(messages: list[Any]) -> list[Json]:
    found = [body for body in updates(messages) if body["sessionUpdate"] == "session_info_update"]
    return [{key: value for key, value in body.items() if key != "sessionUpdate"} for body in found]


def row_of(client: Client, id: str) -> Json:
    reply = client.call("session/list")
    return next(row for row in reply["result"]["sessions"] if row["sessionId"] == id)


def steps(text: str, **sections: str) -> str:
    head = "".join(f"{key}: {value}\n" for key, value in sections.items())
    return (
        f"{head}sessions: {{auto_title: null}}\nturns: [{{steps: {text}}}]\n"
        if "sessions" not in sections
        else (f"{head}turns: [{{steps: {text}}}]\n")
    )


# --- titles made by themselves


def test_the_first_turn_gives_a_title_to_client_and_list() -> None:
    client = client_of("turns: [{steps: [{say: x}]}]")
    session = client.new()
    client.prompt(session, "Fix the login\nplease")
    assert infos(client.sent) == [{"title": "Fix the login"}]
    assert row_of(client, session)["title"] == "Fix the login"
    client.prompt(session, "Something else")
    assert len(infos(client.sent)) == 1


def test_it_can_come_late_and_a_title_of_the_scenario_wins() -> None:
    client = client_of("sessions: {auto_title: {after: 5s}}\nturns: [{steps: [{say: x}]}]")
    session = client.new()
    client.prompt(session, run=False)
    client.theatre.run(4)
    assert infos(client.read()) == []
    client.theatre.run(6)
    assert infos(client.read()) == [{"title": "go"}]
    given = client_of("sessions: {auto_title: {after: 5s}}\nturns: [{steps: [{info: {title: Mine}}]}]")
    given.prompt(given.new())
    assert infos(given.sent) == [{"title": "Mine"}]


def test_it_can_be_switched_off() -> None:
    client = client_of(steps("[{say: x}]"))
    session = client.new()
    client.prompt(session)
    assert infos(client.sent) == []
    assert "title" not in row_of(client, session)


# --- changes


def test_what_was_sent_is_what_the_list_shows_afterwards() -> None:
    client = client_of(
        steps(
            "[{info: {title: A, meta: {a: {b: 1, c: 2}, d: 3}}}, {info: {meta: {a: {b: null}, d: null}}},"
            " {info: {title: B}}]"
        )
    )
    session = client.new()
    client.prompt(session)
    assert infos(client.sent) == [
        {"title": "A", "_meta": {"a": {"b": 1, "c": 2}, "d": 3}},
        {"_meta": {"a": {"b": None}, "d": None}},
        {"title": "B"},
    ]
    row = row_of(client, session)
    assert (row["title"], row["_meta"]) == ("B", {"a": {"c": 2}})


def test_null_clears() -> None:
    client = client_of(steps("[{info: {title: A, meta: {a: 1}}}, {info: {title: null, meta: null, updated_at: null}}]"))
    session = client.new()
    client.prompt(session)
    assert infos(client.sent)[-1] == {"title": None, "_meta": None, "updatedAt": None}
    assert "_meta" not in (row := row_of(client, session))
    assert "title" not in row


def test_times_that_are_given_are_sent_as_iso_times() -> None:
    client = client_of(
        steps(
            "[{info: {updated_at: 2h ago}}, {stop: end_turn}, {info: {updated_at: now}}]",
            clock='{now: "2026-01-15T09:00:00Z"}',
        )
    )
    session = client.new()
    client.prompt(session)
    first, second = (info["updatedAt"] for info in infos(client.sent))
    assert first.startswith("2026-01-15T07:00:0")
    assert second.startswith("2026-01-15T09:00:0")
    assert row_of(client, session)["updatedAt"] == second


def test_a_time_that_is_none_is_sent_and_listed_as_it_stands() -> None:
    text = "legality: violation\n" + steps("[{stop: end_turn}, {info: {updated_at: yesterday}}]")
    client = Theatre(text).client(judge=False)
    session = client.new()
    client.prompt(session)
    assert infos(client.sent) == [{"updatedAt": "yesterday"}]
    assert row_of(client, session)["updatedAt"] == "yesterday"


def test_updated_at_moves_with_every_activity_and_not_only_with_metadata() -> None:
    client = client_of(steps("[{say: x}, {wait: 1s}, {tool: {title: t}}]", clock='{now: "2026-01-15T09:00:00Z"}'))
    session = client.new()
    times = [row_of(client, session)["updatedAt"]]
    client.prompt(session)
    times.append(row_of(client, session)["updatedAt"])
    client.prompt(session)
    times.append(row_of(client, session)["updatedAt"])
    assert times == sorted(set(times))


# --- limits


def test_a_long_title_is_cut_or_refused_as_the_scenario_says_and_force_passes() -> None:
    long = "x" * 600
    cut = client_of(steps(f"[{{info: {{title: {long}}}}}]"))
    cut.prompt(cut.new())
    assert len(infos(cut.sent)[0]["title"]) == 500
    refused = client_of(
        steps(f"[{{info: {{title: {long}}}}}]", sessions="{auto_title: null, title_limit: {length: 10, then: refuse}}")
    )
    session = refused.new()
    refused.prompt(session)
    assert infos(refused.sent) == []
    assert "title" not in row_of(refused, session)
    assert refused.theatre.notes.of("skipped")[0]["why"] == "the title is too long"
    forced = client_of(steps(f"[{{info: {{title: {long}, force: true}}}}]"))
    forced.prompt(forced.new())
    assert infos(forced.sent) == [{"title": long}]


def test_control_characters_are_cleaned_away() -> None:
    client = client_of(steps(r'[{info: {title: "a\e[31m\nb", meta: {k: "x\0y\tz", l: ["\e"]}}}]'))
    client.prompt(client.new())
    assert infos(client.sent) == [{"title": "a [31m b", "_meta": {"k": "xy\tz", "l": [""]}}]


@pytest.mark.parametrize(
    ("meta", "why"),
    [
        ("{a: {b: {c: {d: 1}}}}", "more than 3 levels"),
        ("{a: [[[1]]]}", "more than 3 levels"),
        (f"{{a: {'x' * 100}}}", "100 bytes"),
    ],
)
def test_meta_beyond_its_limits_is_skipped_and_noted(meta: str, why: str) -> None:
    client = client_of(
        steps(
            f"[{{info: {{title: T, meta: {meta}}}}}]", sessions="{auto_title: null, meta_limit: {size: 100, depth: 3}}"
        )
    )
    session = client.new()
    client.prompt(session)
    assert infos(client.sent) == []
    assert why in client.theatre.notes.of("skipped")[0]["why"]
    assert {"title", "_meta"} & row_of(client, session).keys() == set()


def test_many_small_changes_cannot_pass_the_limit_together() -> None:
    rounds = ", ".join(f"{{info: {{meta: {{k{n}: {'x' * 30}}}}}}}" for n in range(5))
    client = client_of(steps(f"[{rounds}]", sessions="{auto_title: null, meta_limit: {size: 100}}"))
    client.prompt(client.new())
    assert len(infos(client.sent)) == 2


def test_updates_that_come_too_fast_wait() -> None:
    rounds = ", ".join(f"{{info: {{title: T{n}}}}}" for n in range(3))
    client = client_of(steps(f"[{rounds}]", sessions="{auto_title: null, update_rate: 2/s}"))
    session = client.new()
    client.prompt(session, run=False)
    seen = []
    for moment in (0.1, 0.6, 1.1):
        client.theatre.run(moment)
        seen.append([info["title"] for info in infos(client.read())])
    assert seen == [["T0"], ["T1"], ["T2"]]


# --- what is scheduled

OPENED = """
sessions: {auto_title: null, stored: [{id: s1}, {id: s2}, {id: other}]}
turns: [{steps: [{say: x}]}]
schedule:
"""


def scheduled(entry: str) -> Client:
    return client_of(OPENED + f"  - {entry}\n")


def told(messages: list[Any]) -> list[tuple[str, str]]:
    return [
        (message["params"]["sessionId"], message["params"]["update"].get("title"))
        for message in messages
        if message.get("method") == "session/update" and "title" in message["params"]["update"]
    ]


def test_rounds_come_after_a_wait_one_by_one_and_end() -> None:
    client = scheduled(
        "{event: session_opened, after: 2s, every: 5s, times: 3, steps: [{info: {title: A}}, {info: {title: B}}]}"
    )
    client.request("session/resume", {"sessionId": "s1", "cwd": CWD})
    counts = []
    for moment in (1.9, 2.1, 7.1, 12.1, 60):
        client.theatre.run(moment)
        counts.append([title for _, title in told(client.read())])
    assert counts == [[], ["A", "B"], ["A", "B"], ["A", "B"], []]


def test_speed_scales_it() -> None:
    client = client_of(
        "clock: {speed: 10}" + OPENED + "  - {event: session_opened, after: 10s, steps: [{info: {title: A}}]}\n"
    )
    client.request("session/resume", {"sessionId": "s1", "cwd": CWD})
    client.theatre.run(0.9)
    assert told(client.read()) == []
    client.theatre.run(1.1)
    assert told(client.read()) == [("s1", "A")]


@pytest.mark.parametrize(
    ("event", "count"), [("session_opened", 1), ("turn_started", 2), ("turn_ended", 2), ("connected", 0)]
)
def test_each_event_starts_it_in_its_own_session(event: str, count: int) -> None:
    client = scheduled(f"{{event: {event}, steps: [{{info: {{title: A}}}}]}}")
    client.call("session/resume", {"sessionId": "s1", "cwd": CWD})
    client.prompt("s1")
    client.prompt("s1")
    assert told(client.sent) == [("s1", "A")] * count


def test_it_can_concern_another_session_or_all_that_fit_a_glob() -> None:
    client = scheduled('{event: connected, session: "s*", steps: [{info: {title: "${session.id}"}}]}')
    client.run()
    assert sorted(told(client.sent)) == [("s1", "s1"), ("s2", "s2")]
    client = scheduled("{event: session_opened, session: other, steps: [{info: {title: A}}]}")
    client.call("session/resume", {"sessionId": "s1", "cwd": CWD})
    assert told(client.sent) == [("other", "A")]


def test_sessions_of_a_glob_have_draws_of_their_own() -> None:
    client = scheduled('{event: connected, session: "*", steps: [{info: {title: "${fake.title}"}}]}')
    client.run()
    assert len({title for _, title in told(client.sent)}) == 3


def test_looking_at_the_list_again_does_not_double_what_repeats() -> None:
    client = scheduled("{event: session_listed, session: s1, every: 10s, steps: [{info: {title: A}}]}")
    for moment in (1, 2, 3):
        client.request("session/list")
        client.theatre.run(moment)
    client.theatre.run(9)
    assert told(client.read()) == [("s1", "A")]
    client.theatre.run(10.1)
    assert told(client.read()) == [("s1", "A")]


def test_a_million_sessions_under_a_glob_are_not_all_looked_at() -> None:
    client = client_of(
        "sessions: {synthetic: {count: 1000000}}\n"
        "schedule: [{event: connected, session: 'x*', steps: [{info: {title: A}}]}]\n"
    )
    client.run()
    assert told(client.sent) == []


# --- the bundled scenarios


def bundled(name: str) -> Client:
    return client_of(stretched(open_scenario(name), 1.0))


def test_late_title() -> None:
    client = bundled("lists/late-title")
    session = client.new()
    turn = client.prompt(session, "weather?", run=False)
    client.theatre.run(1)
    client.read()
    assert client.reply_to(turn)["result"] == {"stopReason": "end_turn"}
    assert infos(client.sent) == []
    client.theatre.run(3)
    client.read()
    assert infos(client.sent) == [{"title": "Weather in Osaka", "_meta": {"tags": ["weather"]}}]


def test_history() -> None:
    client = bundled("history")
    rows = client.call("session/list", {"cwd": "/home/dev/api"})["result"]["sessions"]
    assert rows[1]["sessionId"] == "sess_auth"
    before = len(client.sent)
    client.call("session/load", {"sessionId": "sess_auth", "cwd": "/home/dev/api", "mcpServers": []})
    kinds = [body["sessionUpdate"] for body in updates(client.sent[before:])]
    assert kinds.count("tool_call") == kinds.count("tool_call_update") == 3
    assert kinds[:4] == ["user_message_chunk", "user_message_chunk", "agent_thought_chunk", "plan"]
    client.prompt("sess_auth", "thanks")
    assert words(client.sent).endswith("This is turn 3 of sess_auth. You said: thanks")


def test_rename_on_request() -> None:
    client = bundled("rename-on-request")
    session = client.new()
    client.prompt(session, "hello")
    client.prompt(session, 'Please rename this session to "Login bug"')
    assert row_of(client, session)["title"] == "Login bug"
    client.prompt(session, "and now remove the title")
    assert [info["title"] for info in infos(client.sent)] == ["hello", "Login bug", None]


def test_title_drift() -> None:
    client = bundled("title-drift")
    session = client.new()
    for text in ("a", "b", "c", "d"):
        client.prompt(session, text)
    titles = [info["title"] for info in infos(client.sent)]
    assert len(titles) == 4
    assert all(later.startswith(earlier) for earlier, later in pairwise(titles))


def test_meta_progress() -> None:
    client = bundled("meta-progress")
    session = client.new()
    client.prompt(session, "migrate")
    done = [
        info["_meta"]["progress"]["done"] for info in infos(client.sent) if (info.get("_meta") or {}).get("progress")
    ]
    assert done == [0, 1, 2, 3]
    meta = row_of(client, session)["_meta"]
    assert meta["tags"] == ["migration", "tested"]
    assert "progress" not in meta


def test_sidebar() -> None:
    client = bundled("sidebar")
    client.request("session/list")
    client.theatre.run(0.5)
    rows = client.read()[-1]["result"]["sessions"]
    assert len(rows) == 30
    client.theatre.run(12)
    heard = client.read()
    assert {message["params"]["sessionId"] for message in heard} == {"sess_new", "sess_migration", "sess_review"}
    changes = [message["params"]["update"] for message in heard if message["params"]["sessionId"] == "sess_migration"]
    assert [change["_meta"]["progress"] for change in changes] == [0.3, 0.6, 0.9, None]
    assert changes[-1]["title"] == "Database migrated"


def test_million_sessions() -> None:
    client = bundled("million-sessions")
    page = client.call("session/list")["result"]
    assert len(page["sessions"]) == 50
    store = client.theatre.agent.world.sessions
    assert len(store) == 1_000_000
    last = page["sessions"][-1]
    assert (
        client.call("session/load", {"sessionId": last["sessionId"], "cwd": last["cwd"], "mcpServers": []})["result"]
        == {}
    )
