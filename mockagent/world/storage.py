"""The state file: what clients and turns have changed, over the sessions that the scenario has itself.

SQLite, with a write-ahead log, so that a process that is killed loses nothing that was committed and several processes
can share a file. Whoever sends something calls `commit` before: what a client has been told is in the file. Only
imported when a state file is wanted. A file that is not ours is never opened for writing.

Source: the SQLite file format, section 1.3, for the header that is looked at first.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from mockagent.errors import StateError
from mockagent.scenario import model
from mockagent.scenario.model import Micros
from mockagent.world.clock import Clock
from mockagent.world.digest import differences, digest
from mockagent.world.history import Entry, History, Said
from mockagent.world.records import pack, pack_entry, unpack, unpack_entry
from mockagent.world.session import Session
from mockagent.world.sessions import Sessions

APPLICATION = 0x6D6F636B
_VERSION = 1
_PATIENCE = 10.0  # seconds to wait for another process that writes
_CHECKED = 64 << 20  # bytes up to which a file is read through before it is used
_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE sessions (
    agent TEXT, id TEXT, version INTEGER, data BLOB, PRIMARY KEY (agent, id)
) WITHOUT ROWID;
CREATE INDEX session_versions ON sessions (version);
CREATE TABLE entries (
    number INTEGER PRIMARY KEY AUTOINCREMENT, agent TEXT, session TEXT, place INTEGER, version INTEGER, data BLOB
);
CREATE INDEX entries_of ON entries (agent, session);
CREATE INDEX entry_versions ON entries (version);
"""


class Keeper:
    """The part of a file that belongs to one agent.

    Args:
        store: the file.
        name: of the agent in it.
        sessions: what is kept.
        agent: says which options are secret.
    """

    def __init__(self, store: Store, name: str, sessions: Sessions, agent: model.Agent) -> None:
        self.name = name
        self.sessions = sessions
        self.agent = agent
        self._store = store

    def recall(self, id: str, history: History) -> None:
        """Adds to a history what the file has of it."""
        for number, place, data in self._store.entries(self.name, id):
            _put(history, place, number, unpack_entry(data))

    def take_over(self, id: str, data: bytes | None) -> None:
        """A session has changed in the file; None: it was deleted."""
        self.sessions.adopt(id, None if data is None else unpack(data))

    def take_over_entry(self, id: str, number: int, place: int | None, data: bytes) -> None:
        """An entry has changed in the file. A history that nobody has looked at is read when somebody does."""
        session = self.sessions.known(id)
        if session is not None and session.recalled:
            rows = session.history.rows
            at = next((at for at, known in rows.items() if known == number), place)
            _put(session.history, at, number, unpack_entry(data))


def _put(history: History, at: int | None, number: int, entry: Entry) -> None:
    if at is None or at >= len(history.entries):
        at = len(history.entries)
        history.add(entry)
    else:
        history.replace(at, entry)
    history.rows[at] = number


class Store:
    """A state file that is open.

    Args:
        path: where it is; made if it is not there.
        digests: of the scenario of each agent, by the agent's name.
        born: scenario time now, in microseconds since the epoch; kept when the file is made.

    Attributes:
        born: scenario time when the file was made.

    Raises:
        StateError: the file is not ours, broken, of another scenario, or cannot be reached.
    """

    def __init__(self, path: str, digests: Mapping[str, Mapping[str, str]], born: Micros) -> None:
        self.path = path
        self._names = list(digests)
        self._keepers: dict[str, Keeper] = {}
        self._seen = 0
        self._data_version = -1
        try:
            if _is_new(path):
                _make(path, digests, born)
            else:
                _check(path)
            self._file = _connect(path)
        except OSError as error:  # its own text may name the file that is made beside
            raise StateError(f"{path}: {error.strerror or error}") from error
        except sqlite3.Error as error:
            raise StateError(f"{path}: {error}") from error
        try:
            self._file.execute("PRAGMA journal_mode=WAL")
            self._file.execute("PRAGMA synchronous=NORMAL")
            self._compare(digests)
            self.born: Micros = self._meta("born")
        except sqlite3.Error as error:
            self._file.close()
            raise StateError(f"{path}: {error}") from error
        except BaseException:
            self._file.close()
            raise

    def _meta(self, key: str) -> Micros:
        [(value,)] = self._file.execute("SELECT value FROM meta WHERE key = ?", (key,))
        number: Micros = value
        return number

    def _compare(self, digests: Mapping[str, Mapping[str, str]]) -> None:
        rows = self._file.execute("SELECT key, value FROM meta WHERE key LIKE 'digest/%'")
        kept = {key.partition("/")[2]: msgspec.json.decode(value) for key, value in rows}
        if kept.keys() != digests.keys():
            raise StateError(f"{self.path} was made for {_named(kept)}, not for {_named(digests)}")
        for name, parts in digests.items():
            paths = differences(kept[name], parts)
            if paths:
                listed = ", ".join(f"`{path}`" for path in paths[:5]) + (", ..." if len(paths) > 5 else "")
                verb = "differs" if len(paths) == 1 else "differ"
                raise StateError(f"{self.path} was made for another {name!r}: {listed} {verb}; use another file")

    # --- reading

    @property
    def now(self) -> Micros:
        """The latest scenario time that was kept."""
        return self._meta("now")

    def attach(self, number: int, sessions: Sessions, agent: model.Agent) -> None:
        """Keeps the sessions of an agent from now on, and gives them what the file has.

        Args:
            number: which of the agents that the file was opened for.
            sessions: what is kept.
            agent: says which options are secret.
        """
        name = self._names[number]
        keeper = self._keepers[name] = Keeper(self, name, sessions, agent)
        sessions.attach(keeper.recall, self.refresh)
        for id, data in self._file.execute("SELECT id, data FROM sessions WHERE agent = ?", (name,)):
            keeper.take_over(id, data)
        self._seen = self._meta("version")
        self._data_version = self._other_commits()

    def entries(self, agent: str, session: str) -> list[tuple[int, int | None, bytes]]:
        """What the file has of a history: number, place in the scenario's own, and data."""
        sql = "SELECT number, place, data FROM entries WHERE agent = ? AND session = ? ORDER BY number"
        return self._file.execute(sql, (agent, session)).fetchall()

    def _other_commits(self) -> int:
        [(version,)] = self._file.execute("PRAGMA data_version")
        return int(version)

    def refresh(self) -> None:
        """Takes over what other processes have committed. Cheap when they have not."""
        if self._file.in_transaction:
            return
        version = self._other_commits()
        if version != self._data_version:
            self._data_version = version
            self._take_over()

    def _take_over(self) -> None:
        seen = self._seen
        self._seen = self._meta("version")
        sql = "SELECT agent, id, data FROM sessions WHERE version > ? ORDER BY version"
        for agent, id, data in self._file.execute(sql, (seen,)).fetchall():
            if agent in self._keepers:
                self._keepers[agent].take_over(id, data)
        sql = "SELECT agent, session, number, place, data FROM entries WHERE version > ? ORDER BY number"
        for agent, id, number, place, data in self._file.execute(sql, (seen,)).fetchall():
            if agent in self._keepers:
                self._keepers[agent].take_over_entry(id, number, place, data)

    # --- writing

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """One transaction; nobody else writes meanwhile.

        Raises:
            StateError: it cannot be committed.
        """
        try:
            self._file.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._file.execute("ROLLBACK")
                raise
            self._file.execute("COMMIT")
        except sqlite3.Error as error:
            raise StateError(f"{self.path}: {error}") from error

    def next_number(self) -> int:
        """The number of the next new session, counted over all processes and restarts."""
        with self._writing():
            self._file.execute("UPDATE meta SET value = value + 1 WHERE key = 'ids'")
            return self._meta("ids")

    def commit(self, now: Micros, *, final: bool) -> None:
        """Keeps what has changed. Cheap when nothing has.

        Args:
            now: scenario time.
            final: something complete is told; without, a message that still grows is written only now and then.

        Raises:
            StateError: it cannot be kept.
        """
        if not any(keeper.sessions.unsaved for keeper in self._keepers.values()):
            return
        with self._writing():
            self._take_over()
            self._seen += 1
            self._file.execute("UPDATE meta SET value = ? WHERE key = 'version'", (self._seen,))
            self._file.execute("UPDATE meta SET value = max(value, ?) WHERE key = 'now'", (now,))
            for keeper in self._keepers.values():
                unsaved, keeper.sessions.unsaved = keeper.sessions.unsaved or {}, {}
                for session in unsaved.values():
                    self._save(keeper, session, final)

    def _save(self, keeper: Keeper, session: Session, final: bool) -> None:
        gone = session.state == "deleted"
        data = None if gone else pack(session, keeper.agent)
        sql = "INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?)"
        self._file.execute(sql, (keeper.name, session.id, self._seen, data))
        if gone:
            self._file.execute("DELETE FROM entries WHERE agent = ? AND session = ?", (keeper.name, session.id))
        elif session.recalled:
            self._save_history(keeper, session, final)

    def _save_history(self, keeper: Keeper, session: Session, final: bool) -> None:
        history = session.history
        changed, history.changed = history.changed or {}, {}
        for at in sorted(changed):
            entry = history.entries[at]
            if not final and _grows(entry, at, history):
                history.changed[at] = None
                assert keeper.sessions.unsaved is not None
                keeper.sessions.unsaved[session.id] = session
                continue
            data = pack_entry(entry)
            if at in history.rows:
                sql = "UPDATE entries SET data = ?, version = ? WHERE number = ?"
                self._file.execute(sql, (data, self._seen, history.rows[at]))
                continue
            place = at if at < history.base else None
            sql = "INSERT INTO entries (agent, session, place, version, data) VALUES (?, ?, ?, ?, ?)"
            cursor = self._file.execute(sql, (keeper.name, session.id, place, self._seen, data))
            assert cursor.lastrowid is not None
            history.rows[at] = cursor.lastrowid

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def _grows(entry: Entry, at: int, history: History) -> bool:
    """Whether a message is the last one and is not half as long again as when it was written: it can wait, so that
    a long one is not written once for each of its words."""
    if not isinstance(entry, Said) or at != len(history.entries) - 1 or len(entry.parts) < 2:
        return False
    if len(entry.parts) < history.written.get(at, 0) * 1.5:
        return True
    history.written[at] = len(entry.parts)
    return False


# --- opening


def names_of(scenarios: Sequence[model.Scenario]) -> list[str]:
    """The names of the scenarios of one process, made unique."""
    names: list[str] = []
    for scenario in scenarios:
        number = sum(name.partition("#")[0] == scenario.name for name in names)
        names.append(f"{scenario.name}#{number + 1}" if number else scenario.name)
    return names


def open_store(path: str, scenarios: Sequence[model.Scenario], seeds: Sequence[int], clock: Clock) -> Store:
    """Opens the state file of a process, and lets logical time go on where it stopped.

    Args:
        path: where it is; made if it is not there.
        scenarios: of the agents.
        seeds: of the agents.
        clock: of the process.

    Raises:
        StateError: the file cannot be used.
    """
    parts = [digest(scenario, seed) for scenario, seed in zip(scenarios, seeds, strict=True)]
    store = Store(path, dict(zip(names_of(scenarios), parts, strict=True)), clock.now())
    clock.resume(store.now)
    return store


def _is_new(path: str) -> bool:
    try:
        return os.stat(path).st_size == 0
    except FileNotFoundError:
        return True


def _connect(path: str, *, look: bool = False) -> sqlite3.Connection:
    """Opens a file, to look at it only or to use it. It has to be there."""
    uri = f"{Path(path).absolute().as_uri()}?mode={'ro' if look else 'rw'}"
    return sqlite3.connect(uri, uri=True, timeout=_PATIENCE, isolation_level=None)


def _make(path: str, digests: Mapping[str, Mapping[str, str]], born: Micros) -> None:
    """Makes the file beside its place and puts it there when it is whole. Another process may be faster."""
    beside = f"{path}.new-{os.getpid()}"
    os.close(os.open(beside, os.O_CREAT | os.O_TRUNC | os.O_RDWR, 0o600))
    try:
        file = _connect(beside)
        try:
            _fill(file, digests, born)
        finally:
            file.close()
        try:
            os.link(beside, path)
        except FileExistsError:
            if _is_new(path):
                os.replace(beside, path)
    finally:
        if os.path.exists(beside):
            os.unlink(beside)


def _fill(file: sqlite3.Connection, digests: Mapping[str, Mapping[str, str]], born: Micros) -> None:
    file.execute("BEGIN")
    file.execute(f"PRAGMA application_id = {APPLICATION}")
    file.execute(f"PRAGMA user_version = {_VERSION}")
    for statement in _SCHEMA.split(";"):
        file.execute(statement)
    rows: list[tuple[str, object]] = [("born", born), ("now", born), ("ids", 0), ("version", 0)]
    rows += [(f"digest/{name}", msgspec.json.encode(parts)) for name, parts in digests.items()]
    file.executemany("INSERT INTO meta VALUES (?, ?)", rows)
    file.execute("COMMIT")


def _check(path: str) -> None:
    """Looks whether a file is ours and whole, without changing it.

    Raises:
        StateError: it is not.
        OSError, sqlite3.Error: it cannot be read.
    """
    with open(path, "rb") as raw:
        header = raw.read(100)
    if header[:16] != b"SQLite format 3\0" or len(header) < 100:
        raise StateError(f"{path} is not a state file of mockagent; it was left as it is")
    if int.from_bytes(header[68:72], "big") != APPLICATION:
        raise StateError(f"{path} is another program's database; it was left as it is")
    version = int.from_bytes(header[60:64], "big")
    if version != _VERSION:
        raise StateError(f"{path} has version {version}; this mockagent reads version {_VERSION}")
    if os.path.getsize(path) <= _CHECKED and (why := _damage(path)):
        raise StateError(f"{path} is damaged ({why}); it was left as it is")


def _damage(path: str) -> str | None:
    """What is wrong inside a file, None if nothing is. What looking leaves beside a broken file is taken away."""
    before = _beside(path)
    file = _connect(path, look=True)
    try:
        found = file.execute("PRAGMA quick_check(1)").fetchall()
        why = None if found == [("ok",)] else str(found[0][0])
    except sqlite3.DatabaseError as error:
        why = str(error)
    finally:
        file.close()
    if why is not None:
        for end in _beside(path) - before:
            os.unlink(path + end)
    return why


def _beside(path: str) -> set[str]:
    return {end for end in ("-wal", "-shm") if os.path.exists(path + end)}


def _named(names: Sequence[str] | Mapping[str, object]) -> str:
    return " and ".join(repr(name) for name in names) or "nothing"
