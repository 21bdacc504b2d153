"""Measures pages of the session list: first, middle and last, of a thousand and of a million sessions, side by side.

    python bench/sessions.py [--rounds N]

A page must cost the same wherever it is and however long the list is. Every figure is the best of several rounds and
shown as a ratio to the first page of a thousand sessions. The last lines are the start of a world and its memory.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable

from mockagent.scenario import model
from mockagent.world.clock import Clock
from mockagent.world.sessions import Sessions
from mockagent.world.world import World

FOLDERS = tuple(f"/srv/repos/project-{number}" for number in range(40))
PAGE = 50


def world(count: int) -> Sessions:
    """A list of so many invented sessions."""
    synthetic = model.Synthetic(count=count, cwds=FOLDERS)
    scenario = model.Scenario(sessions=model.Sessions(page_size=PAGE, synthetic=synthetic))
    return World(scenario, Clock(scenario.clock)).sessions


def best(rounds: int, call: Callable[[], object]) -> float:
    """The best time of a call, in seconds."""
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)


def pages(sessions: Sessions, cwd: str | None) -> dict[str, Callable[[], object]]:
    """What is measured: one page each."""
    total = sessions.count(cwd)
    found: dict[str, Callable[[], object]] = {}
    for name, index in (("first", 0), ("middle", total // 2), ("last", max(total - PAGE, 0))):
        cursor = sessions.cursor_at(index, cwd)
        found[name] = lambda cursor=cursor: sessions.page(cwd, cursor)  # type: ignore[misc]
    return found


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    rounds = parser.parse_args().rounds
    base = 0.0
    print(f"pages of {PAGE} rows{'':<22}{'1,000 sessions':>20}{'1,000,000 sessions':>24}")
    small, large = world(1_000), world(1_000_000)
    for cwd, words in ((None, "all folders"), (FOLDERS[7], "one folder of forty")):
        for name in ("first", "middle", "last"):
            times = [best(rounds, pages(sessions, cwd)[name]) for sessions in (small, large)]
            base = base or times[0]
            shown = "".join(f"{seconds * 1000:>12.2f} ms {seconds / base:>5.2f}" for seconds in times)
            print(f"  {name + ' page, ' + words:<34}{shown}")
    times = [best(rounds, lambda count=count: world(count)) for count in (1_000, 1_000_000)]  # type: ignore[misc]
    print(f"  {'start':<34}" + "".join(f"{seconds * 1000:>12.2f} ms {seconds / times[0]:>5.2f}" for seconds in times))
    tracemalloc.start()
    world(1_000_000).page(FOLDERS[7], None)
    print(f"  a million sessions and one page of them: {tracemalloc.get_traced_memory()[1] / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
