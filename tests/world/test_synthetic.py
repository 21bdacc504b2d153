"""Invented sessions: each follows from its number alone, and a million cost nothing until they are looked at."""

from __future__ import annotations

import gc
import tracemalloc
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockagent.scenario import model
from mockagent.world.clock import Clock
from mockagent.world.fakes import coding_provider, fake
from mockagent.world.history import Called, Planned, Said
from mockagent.world.seeds import Seeds
from mockagent.world.sessions import Sessions
from mockagent.world.synthetic import Synthetic, plain
from mockagent.world.words import LOCALES, bank
from mockagent.world.world import World

START = 1_768_467_600_000_000
DAY = 86_400_000_000


def synthetic_of(
    count: int = 1000, cwds: tuple[str, ...] = ("/a", "/b", "/c"), seed: int = 1, **rules: object
) -> Synthetic:
    return Synthetic(model.Synthetic(count=count, cwds=cwds, **rules), "/home", Seeds(seed), START)  # type: ignore[arg-type]


def store_of(seed: int = 1, **rules: object) -> Sessions:
    synthetic = model.Synthetic(**rules)  # type: ignore[arg-type]
    scenario = model.Scenario(clock=model.ClockRules(now=START, speed=0), sessions=model.Sessions(synthetic=synthetic))
    return World(scenario, Clock(scenario.clock), seed=seed).sessions


@given(st.integers(0, 999_999), st.integers(0, 50))
def test_an_id_leads_back_to_its_number(number: int, seed: int) -> None:
    synthetic = synthetic_of(1_000_000, seed=seed)
    assert synthetic.number_of(synthetic.id_of(number)) == number


def test_other_ids_lead_nowhere() -> None:
    synthetic = synthetic_of(10)
    assert synthetic.number_of(synthetic_of(20).id_of(15)) is None
    for id in ("", "sess_", "sess_0123456789aB", "sess_0123456789abc", "sess_auth", "0123456789ab"):
        assert synthetic.number_of(id) is None


@given(st.integers(2, 3000), st.integers(1, 10**13))
def test_times_fall_with_the_number_and_stay_in_the_span(count: int, span: int) -> None:
    synthetic = synthetic_of(count, span=span)
    times = [synthetic.time_of(number) for number in range(count)]
    assert times == sorted(times, reverse=True)
    assert START >= times[0] >= times[-1] >= START - span


@given(
    st.integers(1, 400), st.lists(st.sampled_from(("/a", "/b", "/c", "/d/", "/d")), min_size=1, max_size=9), st.data()
)
def test_a_folders_sessions_can_be_counted_off(count: int, cwds: list[str], data: st.DataObject) -> None:
    synthetic = synthetic_of(count, tuple(cwds))
    cwd = plain(data.draw(st.sampled_from(cwds)))
    own = [number for number in range(count) if plain(synthetic.cwd_of(number)) == cwd]
    assert list(synthetic.behind(cwd, None)) == own
    assert synthetic.before(cwd, count) == len(own)
    start = data.draw(st.integers(0, count - 1))
    assert list(synthetic.behind(cwd, synthetic.key_of(start))) == [number for number in own if number > start]
    assert synthetic.before(cwd, start) == len([number for number in own if number < start])
    for index, number in enumerate(own):
        assert synthetic.nth(cwd, index) == number


def test_every_folder_occurs_in_every_block() -> None:
    synthetic = synthetic_of(300, tuple(f"/{n}" for n in range(10)))
    for block in range(30):
        assert len({synthetic.cwd_of(block * 10 + at) for at in range(10)}) == 10


def test_a_session_is_the_same_whether_or_not_another_was_looked_at() -> None:
    alone, crowd = (store_of(count=1000, cwds=("/a", "/b"), untitled=0.1) for _ in range(2))
    rows = crowd.listed()
    for row in rows[700:740]:
        row.history.say("user", ["more"], None)
    wanted = rows[734]
    again = alone.get(wanted.id)
    assert again is not None
    for name in ("id", "cwd", "title", "updated_at", "meta", "directories", "turns"):
        assert getattr(again, name) == getattr(wanted, name)
    assert again.history.entries == wanted.history.entries[:-1]


def test_another_seed_gives_other_sessions() -> None:
    one, two = ([row.title for row in islice(store_of(seed, count=100).each(), 20)] for seed in (1, 2))
    assert one != two


def test_a_session_that_is_in_use_is_one_object() -> None:
    store = store_of(count=100)
    row = next(store.each())
    assert store.get(row.id) is row


def test_a_look_keeps_nothing_and_a_change_does() -> None:
    store = store_of(count=100)
    gc.disable()
    try:
        id = store.listed()[50].id
        assert (list(store), list(store._seen)) == ([], [])
    finally:
        gc.enable()
    session = store.get(id)
    assert session is not None
    session.history.say("user", ["hello"], None)
    store.touch(session)
    del session
    assert store.listed()[0].id == id
    assert isinstance((kept := store.get(id)) and kept.history.entries[-1], Said)


def test_a_deleted_one_stays_deleted() -> None:
    store = store_of(count=3)
    session = store.listed()[1]
    store.delete(session)
    assert store.get(session.id) is None
    assert len(store.listed()) == len(store) == 2


def test_a_stored_session_can_take_the_place_of_an_invented_one() -> None:
    id = store_of(count=5).listed()[2].id
    scenario = model.Scenario(
        seed=1,
        clock=model.ClockRules(now=START, speed=0),
        sessions=model.Sessions(
            synthetic=model.Synthetic(count=5), stored=(model.Stored(id=id, title="Mine", updated_at="now"),)
        ),
    )
    store = World(scenario, Clock(scenario.clock)).sessions
    assert [row.id for row in store.listed()].count(id) == 1
    assert store.listed()[0].title == "Mine"


def test_new_ids_are_none_of_theirs() -> None:
    store = store_of(count=1_000_000)
    assert all(store._invented and store._invented.number_of(store.create().id) is None for _ in range(50))


def test_a_million_sessions_cost_no_memory() -> None:
    tracemalloc.start()
    try:
        store = store_of(count=1_000_000, cwds=("/a", "/b", "/c"))
        for index in (0, 500_000, 999_980):
            store.page("/b", store.cursor_at(index // 3, "/b"))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3_000_000


def test_part_of_them_is_untitled() -> None:
    titles = [row.title for row in store_of(count=2000, untitled=0.1).each()]
    assert 140 < titles.count(None) < 260
    assert None not in [row.title for row in store_of(count=200).each()]


# --- histories and words


@pytest.mark.parametrize("locale", LOCALES)
def test_histories_hold_all_that_a_session_can_hold(locale: str) -> None:
    store = store_of(count=60, turns=(2, 4), locale=locale)
    entries = [entry for row in store.listed() for entry in row.history.entries]
    assert {entry.role for entry in entries if isinstance(entry, Said)} == {"user", "think", "say"}
    assert any(isinstance(entry, Planned) for entry in entries)
    assert {entry.name for entry in entries if isinstance(entry, Called)} == {"read_file", "edit_file", "run_tests"}
    assert not any("{" in str(part) for entry in entries if isinstance(entry, Said) for part in entry.parts)


def test_a_history_has_as_many_turns_as_its_row_says_and_ids_of_its_own() -> None:
    for row in store_of(count=50, turns=(1, 5)).listed():
        said = [entry for entry in row.history.entries if isinstance(entry, Said)]
        prompts = [entry for entry in said if entry.role == "user"]
        assert len(prompts) == row.turns
        assert row.meta is not None
        assert row.meta["messageCount"] == 2 * row.turns
        calls = [entry for entry in row.history.entries if isinstance(entry, Called)]
        ids = [entry.message_id for entry in said] + [entry.id for entry in calls]
        assert len(ids) == len(set(ids))
        assert f"msg_{row.messages + 1}" not in ids


def test_the_talk_is_about_what_the_title_names() -> None:
    store = store_of(count=200)
    words = bank("en_US")
    for row in store.listed():
        thing = next(thing for thing in words.things if thing in (row.title or ""))
        first = row.history.entries[0]
        assert isinstance(first, Said)
        assert thing in str(first.parts[0])


@pytest.mark.parametrize("locale", LOCALES)
def test_a_bank_has_no_gaps(locale: str) -> None:
    words = bank(locale)
    for name, lines in words._asdict().items():
        for line in lines if isinstance(lines, tuple) else (lines,):
            left = line.replace("{thing}", "").replace("{file}", "").replace("{n}", "")
            assert "{" not in left, (name, line)
    assert len(set(words.things)) == len(words.things)
    assert len(words.titles) * len(words.things) > 150


def test_a_locale_without_a_bank_takes_that_of_its_language_or_english() -> None:
    assert bank("de_AT") is bank("de_DE")
    assert bank("is_IS") is bank("en_US")


def test_titles_vary() -> None:
    titles = {row.title for row in store_of(count=500).each()}
    assert len(titles) > 350


def test_fakes_are_seeded_for_each_session_and_go_on() -> None:
    one, two = Seeds(3), Seeds(3)
    assert [fake("title", one, "s") for _ in range(3)] == [fake("title", two, "s") for _ in range(3)]
    assert fake("name", one, "s") == fake("name", two, "s")
    assert fake("name", one, "s", "ja_JP") == fake("name", two, "s", "ja_JP")


def test_what_faker_does_not_know_is_said() -> None:
    with pytest.raises(LookupError):
        fake("no_such_provider", Seeds(0), None)
    with pytest.raises(LookupError):
        fake("name", Seeds(0), None, "xx_XX")


def test_our_words_are_a_provider_for_faker() -> None:
    from faker import Faker

    maker = Faker("de_DE")
    maker.add_provider(coding_provider("de_DE"))
    maker.seed_instance(4)
    title = maker.coder_title()
    assert any(thing[1:] in title for thing in bank("de_DE").things)


def test_a_plain_list_needs_no_faker() -> None:
    import subprocess
    import sys

    code = (
        "import sys; from mockagent.scenario import model; from mockagent.world.clock import Clock;"
        "from mockagent.world.world import World;"
        "s = model.Scenario(sessions=model.Sessions(synthetic=model.Synthetic(count=100)));"
        "w = World(s, Clock(s.clock)); w.sessions.page(None, None);"
        "sys.exit(any(name in sys.modules for name in ('faker', 'sqlite3', 'rich')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_spans_reach_back() -> None:
    oldest = store_of(count=100, span=10 * DAY).listed()[-1]
    assert oldest.updated is not None
    assert START - 10 * DAY <= oldest.updated <= START - 9 * DAY
