"""The state file: what is kept, who may use it, and what is never touched."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockagent.errors import StateError
from mockagent.scenario import model
from mockagent.scenario.load import load_text
from mockagent.world.clock import SECOND, Clock
from mockagent.world.digest import differences, digest
from mockagent.world.history import Called, Planned, Said
from mockagent.world.ids import Ids
from mockagent.world.records import pack_entry, unpack_entry
from mockagent.world.seeds import Seeds
from mockagent.world.sessions import Session, Sessions
from mockagent.world.storage import Store, names_of, open_store
from mockagent.world.world import World

SCENARIO = """
name: kept
clock: {now: "2026-01-15T09:00:00Z"}
agent:
  options: [{id: key, name: Key, type: secret, value: ""}, {id: lang, name: Language, type: text, value: English}]
sessions:
  stored:
    - id: sess_a
      title: A
      history: [{user: hi}, {tool: {id: t1, name: look, side: client}}]
  synthetic: {count: 40, cwds: [/a, /b]}
"""


class Process:
    """What one process has of a state file."""

    def __init__(self, path: Path, scenario: model.Scenario) -> None:
        self.clock = Clock(scenario.clock)
        self.store = open_store(str(path), [scenario], [scenario.seed], self.clock)
        ids = Ids(Seeds(scenario.seed).rng("session ids"))
        ids.count = self.store.next_number
        self.sessions: Sessions = World(scenario, self.clock, ids=ids, born=self.store.born).sessions
        self.store.attach(0, self.sessions, scenario.agent)

    def commit(self, *, final: bool = True) -> None:
        self.store.commit(self.clock.now(), final=final)

    def get(self, id: str) -> Session:
        session = self.sessions.get(id)
        assert session is not None
        return session


Open = Callable[..., Process]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


@pytest.fixture
def start(path: Path) -> Iterator[Open]:
    """Starts a process on the file; all are gone after the test."""
    processes: list[Process] = []

    def open_one(text: str = SCENARIO) -> Process:
        processes.append(Process(path, load_text(text)))
        return processes[-1]

    yield open_one
    for process in processes:
        process.store.close()


def said(session: Session) -> list[str]:
    return ["".join(map(str, entry.parts)) for entry in session.history.entries if isinstance(entry, Said)]


# --- over a restart


def test_sessions_titles_histories_and_deletions_come_back(start: Open) -> None:
    before = start()
    made = before.sessions.create("/x", ("/y",))
    made.history.say("user", ["one"], "user_1")
    made.history.say("say", ["two"], "msg_1")
    made.history.plan([{"content": "three"}])
    before.sessions.apply(made, model.InfoFields(title="T", meta={"deep": {"er": 1}}))
    rows = [row.id for row in before.sessions.listed()]
    before.sessions.delete(before.get("sess_a"))
    before.sessions.delete(before.get(rows[5]))
    before.commit()
    order = [row.id for row in before.sessions.listed()]
    before.store.close()
    after = start()
    again = after.get(made.id)
    assert (again.cwd, again.directories, again.title, again.meta) == ("/x", ("/y",), "T", {"deep": {"er": 1}})
    assert (again.state, again.updated) == ("stored", made.updated)
    assert again.history.entries == made.history.entries
    assert after.sessions.get("sess_a") is None
    assert after.sessions.get(rows[5]) is None
    assert [row.id for row in after.sessions.listed()] == order


def test_what_is_new_lies_over_what_the_scenario_has(start: Open) -> None:
    before = start()
    invented = before.get(next(row.id for row in before.sessions.each() if row.id != "sess_a"))
    past = len(invented.history.entries)
    invented.history.say("user", ["more"], "user_9")
    before.sessions.touch(invented)
    stored = before.get("sess_a")
    stored.history.update("t1", {"status": "completed"}, "found")
    before.sessions.touch(stored)
    before.commit()
    before.store.close()
    after = start()
    assert len(after.get(invented.id).history.entries) == past + 1
    assert said(after.get(invented.id))[-1] == "more"
    call = after.get("sess_a").history.find("t1")
    assert call is not None
    assert call.result == "found"
    assert len(after.get("sess_a").history.entries) == 2


def test_ids_are_counted_on(start: Open) -> None:
    before = start()
    ids = [before.sessions.create().id for _ in range(3)]
    before.sessions.delete(before.get(ids[2]))
    before.commit()
    before.store.close()
    after = start()
    assert after.sessions.create().id not in ids


def test_message_ids_go_on(start: Open) -> None:
    before = start()
    session = before.sessions.create()
    first = session.next_message_id()
    before.sessions.touch(session)
    before.commit()
    before.store.close()
    assert start().get(session.id).next_message_id() != first


def test_logical_time_goes_on_where_it_stopped(start: Open) -> None:
    before = start()
    before.clock.skip(100 * SECOND)
    before.sessions.create()
    before.commit()
    now = before.clock.now()
    before.store.close()
    assert start().clock.now() >= now


def test_invented_sessions_keep_their_times(path: Path) -> None:
    scenario = load_text("sessions: {synthetic: {count: 3}}")
    times = []
    for wall in (1_768_467_600.0, 1_768_999_999.0):
        clock = Clock(scenario.clock, wall=lambda wall=wall: wall)  # type: ignore[misc]
        store = open_store(str(path), [scenario], [0], clock)
        times.append([row.updated for row in World(scenario, clock, born=store.born).sessions.each()])
        store.close()
    assert times[0] == times[1]


def test_a_message_that_grows_is_written_whole_in_the_end(start: Open, path: Path) -> None:
    before = start()
    session = before.sessions.create()
    for number in range(200):
        session.history.say("say", [f"{number} "], "msg_1")
        before.sessions.touch(session)
        before.commit(final=False)
    writes = before.store._seen
    before.commit()
    before.store.close()
    assert said(start().get(session.id)) == ["".join(f"{number} " for number in range(200))]
    assert writes <= 200


def test_without_a_commit_nothing_is_in_the_file(start: Open) -> None:
    before = start()
    session = before.sessions.create()
    before.store.close()
    assert start().sessions.get(session.id) is None


def test_a_fork_is_kept_with_its_past(start: Open) -> None:
    before = start()
    fork = before.sessions.fork(before.get("sess_a"), "/home/dev/project")
    before.commit()
    before.store.close()
    again = start().get(fork.id)
    assert again.title == "A"
    assert said(again) == ["hi"]


def test_secrets_are_not_in_the_file(start: Open, path: Path) -> None:
    before = start()
    session = before.sessions.create()
    session.config["key"] = "hunter2-very-secret"
    session.config["lang"] = "Deutsch"
    session.saved = {"copy": "hunter2-very-secret", "other": 1}
    before.sessions.touch(session)
    before.commit()
    before.store.close()
    assert b"hunter2" not in b"".join(file.read_bytes() for file in path.parent.iterdir())
    again = start().get(session.id)
    assert again.config == {"key": "***", "lang": "Deutsch"}
    assert again.saved == {"copy": "***", "other": 1}


def test_only_the_owner_can_read_it(start: Open, path: Path) -> None:
    process = start()
    process.sessions.create()
    process.commit()
    modes = {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == {0o600}


@given(
    st.one_of(
        st.builds(
            lambda role, parts, id: Said(role=role, parts=parts, message_id=id),
            st.sampled_from(("user", "say", "think", "system")),
            st.lists(st.text() | st.dictionaries(st.text(), st.integers(-5, 5)), max_size=3),
            st.none() | st.text(),
        ),
        st.builds(
            lambda id, given, result: Called(id=id, name=None, input=given, fields={"status": "x"}, **result),
            st.text(),
            st.none() | st.dictionaries(st.text(), st.text()),
            st.sampled_from(({}, {"result": None}, {"result": "x", "returned": (3, 1)}, {"denied": "no"})),
        ),
        st.builds(
            lambda entries: Planned(entries=entries), st.lists(st.dictionaries(st.text(), st.text()), max_size=2)
        ),
    )
)
def test_an_entry_comes_back_as_it_was(entry: Any) -> None:
    assert unpack_entry(pack_entry(entry)) == entry


# --- several processes


def test_two_processes_see_each_others_work_at_once(start: Open) -> None:
    one, two = start(), start()
    assert len(two.sessions) == 41
    made = one.sessions.create("/x")
    made.history.say("user", ["hello"], "user_1")
    one.commit()
    assert two.sessions.listed()[0].id == made.id
    assert said(two.get(made.id)) == ["hello"]
    two.sessions.apply(two.get(made.id), model.InfoFields(title="Named there"))
    two.get(made.id).history.say("say", ["hi"], "msg_1")
    two.sessions.touch(two.get(made.id))
    two.commit()
    assert one.get(made.id).title == "Named there"
    assert said(one.get(made.id)) == ["hello", "hi"]
    two.sessions.delete(two.get("sess_a"))
    two.commit()
    assert one.sessions.get("sess_a") is None


def test_two_processes_never_give_out_one_id_twice(start: Open) -> None:
    one, two = start(), start()
    ids = [process.sessions.create().id for _ in range(10) for process in (one, two)]
    assert len(set(ids)) == 20


def test_work_in_one_session_at_once_is_all_kept(start: Open) -> None:
    one, two = start(), start()
    for process, word in ((one, "from one"), (two, "from two")):
        session = process.get("sess_a")
        session.turns += 1
        session.history.say("user", [word], None)
        process.sessions.touch(session)
    one.commit()
    two.commit()
    for process in (one, two, start()):
        assert sorted(said(process.get("sess_a"))) == ["from one", "from two", "hi"]


def test_a_page_begun_before_another_process_worked_goes_on(start: Open) -> None:
    one, two = start(), start()
    first, cursor = one.sessions.page(None, None)
    two.sessions.touch(two.get(one.sessions.listed()[30].id))
    two.sessions.create()
    two.commit()
    second, _ = one.sessions.page(None, cursor)
    ids = [row.id for row in [*first, *second]]
    assert len(ids) == len(set(ids)) == 41


# --- files that cannot be used


def refused(path: Path, text: str = SCENARIO) -> str:
    with pytest.raises(StateError) as error:
        Process(path, load_text(text))
    return str(error.value)


def untouched(path: Path, text: str = SCENARIO) -> str:
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    times = {file.name: file.stat().st_mtime_ns for file in path.parent.iterdir()}
    why = refused(path, text)
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before
    assert {file.name: file.stat().st_mtime_ns for file in path.parent.iterdir()} == times
    assert str(path) in why
    return why


@pytest.mark.parametrize("content", [b"hello\n", b"SQLite format 3\0", b"\0" * 4096, os.urandom(9000)])
def test_a_file_that_is_no_database_is_left_alone(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert "not a state file" in untouched(path)


def test_another_programs_database_is_left_alone(path: Path) -> None:
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE sessions (id)")
    other.commit()
    other.close()
    assert "another program's database" in untouched(path)


def test_a_damaged_file_is_left_alone(start: Open, path: Path) -> None:
    process = start()
    for _ in range(50):
        process.sessions.create()
    process.commit()
    process.store.close()
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert "damaged" in untouched(path)
    path.write_bytes(whole[:8192] + os.urandom(len(whole) - 8192))
    assert "damaged" in untouched(path)
    path.write_bytes(whole)
    assert len(start().sessions) == 91


def test_a_file_of_a_later_version_is_left_alone(start: Open, path: Path) -> None:
    start().store.close()
    content = bytearray(path.read_bytes())
    content[60:64] = (99).to_bytes(4, "big")
    path.write_bytes(content)
    assert "version 99" in untouched(path)


def test_another_scenario_is_refused_and_the_difference_named(start: Open, path: Path) -> None:
    start().store.close()
    assert "'other'" in refused(path, SCENARIO.replace("name: kept", "name: other"))
    assert "`sessions/synthetic`" in refused(path, SCENARIO.replace("count: 40", "count: 41"))
    assert "`seed`" in refused(path, SCENARIO + "seed: 5\n")
    assert "`turns/0`" in refused(path, SCENARIO + "turns: [{steps: [{say: hi}]}]\n")


def test_faults_waits_and_words_for_people_may_differ(start: Open) -> None:
    start().store.close()
    text = SCENARIO + "summary: New.\ntags: [x]\nfaults: [{at: list, error: busy}]\n"
    assert start(text).get("sess_a").title == "A"


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert "No such file" in refused(tmp_path / "nowhere" / "state.db")


def test_an_empty_file_is_a_new_one(path: Path, start: Open) -> None:
    path.touch()
    process = start()
    process.sessions.create()
    process.commit()
    assert [file.name for file in path.parent.iterdir() if "new" in file.name] == []


def test_a_commit_that_fails_says_so_and_undoes_itself(start: Open, path: Path) -> None:
    process = start()
    process.sessions.create()
    other = sqlite3.connect(path)
    other.execute("DROP TABLE entries")
    other.execute("DROP TABLE sessions")
    other.commit()
    other.close()
    with pytest.raises(StateError):
        process.commit()


def test_a_folder_that_is_not_there_is_told_by_the_name_that_was_given(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "state.db"
    with pytest.raises(StateError) as error:
        Store(str(path), {"kept": {}}, born=0)
    assert str(error.value) == f"{path}: No such file or directory"


# --- digests


def test_a_digest_does_not_depend_on_where_things_stand_in_the_file() -> None:
    one, two = load_text(SCENARIO), load_text("# comment\n\n" + SCENARIO)
    assert differences(digest(one, 0), digest(two, 0)) == []


def test_scenarios_of_one_name_are_told_apart() -> None:
    scenario = model.Scenario(name="x")
    assert names_of([scenario, model.Scenario(name="y"), scenario, scenario]) == ["x", "y", "x#2", "x#3"]


def test_store_is_only_imported_when_wanted() -> None:
    import subprocess
    import sys

    code = "import sys, mockagent.host, mockagent.acp.stdio; sys.exit(bool({'sqlite3', 'faker'} & {*sys.modules}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_number_of_agents_has_to_fit(path: Path) -> None:
    one = load_text(SCENARIO)
    Store(str(path), {"kept": digest(one, 0)}, 0).close()
    with pytest.raises(StateError, match="not for 'kept' and 'x'"):
        Store(str(path), {"kept": digest(one, 0), "x": {}}, 0)
