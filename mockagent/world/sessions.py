"""All sessions of one agent: those that a scenario stores, those that it invents, and those that clients make.

A session belongs to the world, not to a connection or a protocol: what is made over one is there for the other. This
module keeps data; what plays in a session is `script`'s. Invented sessions are made when they are looked at, and kept
only once something about them has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from heapq import merge as merge_sorted
from itertools import islice
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from msgspec import UNSET

from mockagent.scenario import model
from mockagent.scenario.model import Micros
from mockagent.world.clock import SECOND, Clock, iso
from mockagent.world.cursors import NOBODY, START, Cursors, Holder, Share, refused
from mockagent.world.history import History
from mockagent.world.ids import Ids
from mockagent.world.metadata import Refused, check_meta, clean_meta, clean_title, merge, moment_of
from mockagent.world.order import Key, Order
from mockagent.world.seeds import Seeds
from mockagent.world.session import Session as Session
from mockagent.world.session import State as State
from mockagent.world.synthetic import Synthetic, plain

if TYPE_CHECKING:
    from mockagent.world.records import Record

_GONE = -1
"""In place of the epoch in which an invented session left its place: it is deleted."""


class Sessions:
    """The store.

    Args:
        scenario: its `sessions` and `agent` sections say what is there at the start.
        clock: tells the time of activity.
        seeds: where chances come from.
        ids: where new ids come from.
        born: scenario time of what is there at the start; None: now.

    Attributes:
        fill: fills the placeholders of a step in a stored history; whoever plays the scenario puts it here.
        unsaved: sessions that have changed since a file has kept them, by id; None: none is kept.
    """

    def __init__(
        self, scenario: model.Scenario, clock: Clock, seeds: Seeds, ids: Ids, *, born: Micros | None = None
    ) -> None:
        self._rules = scenario.sessions
        self._agent = scenario.agent
        self._clock = clock
        self._seeds = seeds
        self._ids = ids
        self._born = clock.now() if born is None else born
        self.fill: Callable[[Session, model.Step], Any] = lambda session, step: step.payload
        self.unsaved: dict[str, Session] | None = None
        self._refresh: Callable[[], None] | None = None
        self._kept_history: Callable[[str, History], None] | None = None
        self._kept: dict[str, Session] = {}
        self._seen: WeakValueDictionary[str, Session] = WeakValueDictionary()
        self._order = Order()
        self._moved: dict[str, Session] = {}
        self._deleted: set[str] = set()
        self._left: dict[int, int] = {}  # invented sessions that are not in their place any more -> since which epoch
        self._made = 0
        self._cursors: Cursors | None = None
        self._invented = self._invent(scenario)
        for number, stored in enumerate(self._rules.stored):
            self._keep(self._from_scenario(stored, number))

    def _invent(self, scenario: model.Scenario) -> Synthetic | None:
        rules = scenario.sessions.synthetic
        return Synthetic(rules, scenario.sessions.cwd, self._seeds, self._born) if rules and rules.count else None

    # --- what is there at the start

    def _from_scenario(self, stored: model.Stored, number: int) -> Session:
        cwd = stored.cwd or self._rules.cwd
        session = Session(stored.id, cwd, self._born, stored.additional_directories, place=(0, number))
        session.title = stored.title
        session.meta = stored.meta
        session.state = "stored"
        session.turns = sum(step.verb == "user" for step in stored.history)
        if stored.updated_at is None:
            session.updated = None
        elif stored.updated_at is not UNSET:
            self._state_time(session, stored.updated_at, self._born)
        self._set_up(session, partial(self._written, stored))
        return session

    def _written(self, stored: model.Stored, session: Session) -> History:
        if not stored.history:
            return History()
        from mockagent.world.past import written

        return History(written(stored.history, lambda step: self.fill(session, step)))

    def _look(self, number: int) -> Session:
        """An invented session: the one that is kept or in use, or made now."""
        assert self._invented is not None
        invented = self._invented
        id = invented.id_of(number)
        found = self._kept.get(id) or self._seen.get(id)
        if found is not None:
            return found
        row = invented.row(number)
        session = Session(id, invented.cwd_of(number), invented.time_of(number), row.directories, place=(1, number))
        session.title, session.meta, session.turns = row.title, row.meta, row.turns
        session.state = "stored"
        self._set_up(session, partial(self._made_up, number))
        self._seen[id] = session
        return session

    def _made_up(self, number: int, session: Session) -> History:
        from mockagent.world.past import invented

        assert self._invented is not None
        turns = self._invented.row(number).turns
        return History(invented(self._invented.rng(number), self._invented.locale, turns))

    def _set_up(self, session: Session, past: Callable[[Session], History] | None = None) -> None:
        """Gives a session what all have: options, a mode, a history."""
        session.recall = partial(self._recall, past)  # knows no session: one that nobody needs has to go at once
        session.watched = self.unsaved is not None
        session.config = {option.id: option.value for option in self._agent.options}
        session.mode = self._agent.modes[0].id if self._agent.modes else None

    def _recall(self, past: Callable[[Session], History] | None, session: Session) -> History:
        history = History() if past is None else past(session)
        if self._kept_history is not None:
            self._kept_history(session.id, history)
        return history

    # --- keeping in a file

    def attach(self, history: Callable[[str, History], None], refresh: Callable[[], None]) -> None:
        """What changes is kept in a file from now on.

        Args:
            history: adds to a history what the file has of it.
            refresh: called before anything is looked up, so that what others have changed is taken over.
        """
        self.unsaved = {}
        self._kept_history = history
        self._refresh = refresh
        for session in self._kept.values():
            session.watched = True

    @property
    def keeps(self) -> bool:
        """Whether sessions are kept in a file."""
        return self.unsaved is not None

    def known(self, id: str) -> Session | None:
        """The session of that id if it is in memory."""
        return self._kept.get(id) or self._seen.get(id)

    def adopt(self, id: str, record: Record | None) -> None:
        """Takes over what a file says of a session; None: it was deleted. What is not yet kept of ours wins."""
        from mockagent.world.records import catch_up, restore

        session = self._kept.get(id)
        if record is None:
            if session is not None:
                session.state = "deleted"
            self._remove(id)
            return
        if session is not None and self.unsaved and id in self.unsaved:
            catch_up(session, record)
            return
        if session is None:
            number = self._invented.number_of(id) if self._invented is not None else None
            session = self._look(number) if number is not None else self._unfold(id, record)
        restore(session, record)
        self._keep(session)

    def _unfold(self, id: str, record: Record) -> Session:
        self._made += 1
        session = Session(id, record.cwd, record.updated or 0, place=(0, -self._made))
        session.state = "stored"
        self._set_up(session)
        return session

    # --- making and finding

    def create(self, cwd: str | None = None, directories: tuple[str, ...] = (), *, id: str | None = None) -> Session:
        """Makes a session, active at once. Ids come from the seed: the n-th session always has the same."""
        id = self._new_id() if id is None else id
        self._made += 1
        session = Session(id, cwd or self._rules.cwd, self._clock.now(), directories, place=(0, -self._made))
        self._set_up(session)
        self._deleted.discard(id)
        self._keep(session)
        self.changed(session)
        return session

    def fork(self, parent: Session, cwd: str, directories: tuple[str, ...] = ()) -> Session:
        """Makes a session with another one's past and metadata; from here on they are two."""
        session = self.create(cwd, directories)
        parent.copy_to(session)
        return session

    def _new_id(self) -> str:
        while self._taken(id := self._ids.next()):
            pass
        return id

    def _taken(self, id: str) -> bool:
        invented = self._invented is not None and self._invented.number_of(id) is not None
        return id in self._kept or id in self._deleted or invented

    def get(self, id: str) -> Session | None:
        """The session of that id, unless it was deleted or never was."""
        if self._refresh is not None:
            self._refresh()
        found = self._kept.get(id)
        if found is not None or self._invented is None:
            return found
        number = self._invented.number_of(id)
        return None if number is None or self._left.get(number) == _GONE else self._look(number)

    def _keep(self, session: Session) -> None:
        self._kept[session.id] = session
        self._moved[session.id] = session

    def changed(self, session: Session) -> None:
        """Something about a session is not any more as the scenario has it."""
        if session.id not in self._kept:
            self._keep(session)
        if self.unsaved is not None:
            self.unsaved[session.id] = session

    # --- the list

    def page(
        self, cwd: str | None, cursor: str | None, holder: Holder = NOBODY, share: Share | None = None
    ) -> tuple[list[Session], str | None]:
        """One page of the list.

        Args:
            cwd: only sessions of this directory.
            cursor: what the page before came with; None: the first page.
            holder: who asks.
            share: the list is a part of a longer one, which has its own cursors and its own length of a page.

        Returns:
            The rows, and the cursor of the next page or None.

        Raises:
            Refusal: `invalid_cursor`; its data says why.
        """
        self._settle()
        size, cursors = (self._rules.page_size, self.cursors) if share is None else share
        wanted = None if cwd is None else plain(cwd)
        mark, epoch = None, self._order.epoch
        if cursor is not None:
            mark, epoch = self._take(cursors, cursor, wanted, holder)
        found = list(islice(self._walk(wanted, mark, epoch), size + 1))
        rows = found[:size]
        following = None
        if len(found) > len(rows):
            following = self._give(cursors, rows[-1][0] if rows else mark or START, epoch, wanted, holder)
        return [session for _, session in rows], following

    def each(self, cwd: str | None = None) -> Iterator[Session]:
        """All sessions that a client would see, the last active first, one by one."""
        self._settle()
        wanted = None if cwd is None else plain(cwd)
        return (session for _, session in self._walk(wanted, None, self._order.epoch))

    def listed(self, cwd: str | None = None) -> list[Session]:
        """The same as a list; with a million of invented ones that takes time and memory."""
        return list(self.each(cwd))

    def _walk(self, cwd: str | None, mark: Key | None, epoch: int) -> Iterator[tuple[Key, Session]]:
        """The list as it was in an epoch, behind a place."""
        kept = ((entry.key, entry.id, -1) for entry in self._order.behind(cwd, mark, epoch))
        for key, id, number in merge_sorted(kept, self._walk_invented(cwd, mark, epoch)):
            yield key, self._kept[id] if number < 0 else self._look(number)

    def _walk_invented(self, cwd: str | None, mark: Key | None, epoch: int) -> Iterator[tuple[Key, str, int]]:
        invented = self._invented
        if invented is None:
            return
        for number in invented.behind(cwd, mark):
            if self._left.get(number, epoch + 1) > epoch:
                yield invented.key_of(number), "", number

    def _settle(self) -> None:
        """Brings the order up to date with what has changed since somebody looked."""
        if self._refresh is not None:
            self._refresh()
        if not self._moved:
            return
        epoch = self._order.change()
        moved, self._moved = self._moved, {}
        for session in moved.values():
            number = self._number(session)
            if number is not None and session.key != self._invented_key(number):
                self._left.setdefault(number, epoch)
            if number is None or number in self._left:
                self._order.place(session.id, plain(session.cwd), session.key)

    def _number(self, session: Session) -> int | None:
        return None if self._invented is None else self._invented.number_of(session.id)

    def _invented_key(self, number: int) -> Key:
        assert self._invented is not None
        return self._invented.key_of(number)

    # --- cursors

    @property
    def cursors(self) -> Cursors:
        """Those of this list."""
        if self._cursors is None:
            self._cursors = Cursors(self._rules.cursor, self._process())
        return self._cursors

    def _process(self) -> int:
        """Names the process: by chance, but where time is logical and all has to be the same in each run."""
        if self._clock.logical:
            return self._seeds.fresh("process").getrandbits(40)
        import os

        return int.from_bytes(os.urandom(5), "big")

    def _give(self, cursors: Cursors, mark: Key, epoch: int, cwd: str | None, holder: Holder) -> str:
        if epoch == self._order.epoch:
            self._order.give_out()
        return cursors.give(mark, epoch, cwd, holder, self._clock.now())

    def _take(self, cursors: Cursors, text: str, cwd: str | None, holder: Holder) -> tuple[Key, int]:
        cursor = cursors.take(text, cwd, holder, self._clock.now())
        if cursor.process != cursors.process or cursor.epoch > self._order.epoch:
            return cursor.mark, self._order.epoch  # of another process: what it knew of the order is gone
        if cursor.epoch < self._order.horizon:
            raise refused("expired")
        return cursor.mark, cursor.epoch

    def cursor_at(self, index: int, cwd: str | None = None, holder: Holder = NOBODY) -> str | None:
        """A cursor for the page that begins at an index of the list, as paging up to there would have given it.

        Args:
            index: how many rows come before; 0 is the first page, for which there is none.
            cwd: the filter.
            holder: who will use it.
        """
        self._settle()
        wanted = None if cwd is None else plain(cwd)
        mark = self._mark_before(index, wanted)
        return None if mark is None else self._give(self.cursors, mark, self._order.epoch, wanted, holder)

    def _mark_before(self, index: int, cwd: str | None) -> Key | None:
        """The key of the last of so many rows."""
        if index <= 0:
            return None
        epoch = self._order.epoch
        entries = list(self._order.behind(cwd, None, epoch))
        invented = self._invented
        if invented is None:
            return entries[min(index, len(entries)) - 1].key if entries else None
        places = sorted(invented.before(cwd, number) for number in self._left if self._in_folder(number, cwd))
        behind = iter(entries)
        entry = next(behind, None)
        at, left = 0, index  # rank among the invented ones of the folder, and how many rows are still to pass
        for place in [*places, self._count_invented(cwd)]:
            while at < place:
                number = invented.nth(cwd, at)
                key = invented.key_of(number)
                if entry is not None and entry.key < key:
                    left -= 1
                    if not left:
                        return entry.key
                    entry = next(behind, None)
                    continue
                run = place - at if entry is None else self._run(cwd, at, place, entry.key)
                if left <= run:
                    return invented.key_of(invented.nth(cwd, at + left - 1))
                left -= run
                at += run
            at = max(at, place + 1)
        rest = ([entry] if entry is not None else []) + list(behind)
        return rest[min(left, len(rest)) - 1].key if rest else None

    def _run(self, cwd: str | None, start: int, end: int, key: Key) -> int:
        """How many invented sessions in a row come before a key."""
        from bisect import bisect_left

        assert self._invented is not None
        invented = self._invented
        return bisect_left(range(start, end), key, key=lambda at: invented.key_of(invented.nth(cwd, at)))

    def _in_folder(self, number: int, cwd: str | None) -> bool:
        return self._invented is not None and (cwd is None or plain(self._invented.cwd_of(number)) == cwd)

    def _count_invented(self, cwd: str | None) -> int:
        return 0 if self._invented is None else self._invented.before(cwd, self._invented.count)

    def count(self, cwd: str | None = None) -> int:
        """How many sessions the list has."""
        self._settle()
        wanted = None if cwd is None else plain(cwd)
        kept = sum(1 for _ in self._order.behind(wanted, None, self._order.epoch))
        left = sum(self._in_folder(number, wanted) for number in self._left)
        return kept + self._count_invented(wanted) - left

    # --- changing

    def activate(self, session: Session, directories: tuple[str, ...] | None = None) -> None:
        """A session is open from now on. That alone is no activity in it.

        Args:
            session: which.
            directories: its further folders from now on; None: as they were.
        """
        session.state = "active"
        if directories is not None:
            session.directories = directories
        self.changed(session)

    def touch(self, session: Session) -> None:
        """Notes activity: `updatedAt` moves with every activity, not only with metadata."""
        self._clock.activity()
        if session.state == "deleted":
            return
        session.updated = self._clock.now()
        session.stated = None
        self.changed(session)
        self._moved[session.id] = session

    def apply(self, session: Session, info: model.InfoFields) -> model.InfoFields:
        """Changes metadata as `session_info_update` says.

        Returns:
            What to send: the fields as they were applied.

        Raises:
            Refused: it goes beyond a limit.
        """
        title, meta, updated_at = info.title, info.meta, info.updated_at
        if not info.force:
            if isinstance(title, str) and (title := clean_title(title, self._rules.title_limit)) is None:
                raise Refused("the title is too long")
            meta = clean_meta(meta) if isinstance(meta, dict) else meta
        merged = merge(session.meta, meta) if meta is None or isinstance(meta, dict) else session.meta
        if not info.force:
            check_meta(merged, self._rules.meta_limit)
        self.touch(session)
        if title is None or isinstance(title, str):
            session.title = title
        session.meta = merged
        if updated_at is None:
            session.updated = None
        elif isinstance(updated_at, str):
            updated_at = self._state_time(session, updated_at, self._clock.now())
        return model.InfoFields(title=title, updated_at=updated_at, meta=meta, force=info.force)

    def _state_time(self, session: Session, text: str, now: Micros) -> str:
        """Sets the time of the last activity to what a scenario wrote; a text that is no time stands as it is.

        Returns:
            What is sent: an ISO time, unless it is none.
        """
        moment = moment_of(text, now)
        if moment is None:
            session.stated = text
            return text
        session.updated = moment
        return text if text[:1].isdigit() and not text.endswith(" ago") else iso(moment)

    def slot(self, session: Session, now: Micros) -> Micros:
        """How long new metadata of a session has to wait so that they are not sent too often; the slot is taken.

        Args:
            session: whose.
            now: stage time.
        """
        rate = self._rules.update_rate
        if rate is None:
            return 0
        begins = max(now, session.next_update)
        session.next_update = begins + round(SECOND / rate)
        return begins - now

    def delete(self, session: Session) -> None:
        """Removes a session from every list, also from those that are being paged through."""
        session.state = "deleted"
        self._remove(session.id)
        if self.unsaved is not None:
            self.unsaved[session.id] = session

    def _remove(self, id: str) -> None:
        self._kept.pop(id, None)
        self._moved.pop(id, None)
        self._order.remove(id)
        self._deleted.add(id)
        self._seeds.forget(id)
        number = self._invented.number_of(id) if self._invented is not None else None
        if number is not None:
            self._left[number] = _GONE

    def __iter__(self) -> Iterator[Session]:
        """Those that are kept: all but the invented ones that nothing has happened to."""
        return iter(self._kept.values())

    def __len__(self) -> int:
        return self.count()


def same_directory(one: str, other: str) -> bool:
    """Whether two paths are the same folder; a slash at the end makes no difference."""
    return plain(one) == plain(other)
