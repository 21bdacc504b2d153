"""The verdict on the client: broken rules, missed expectations, and the faults that it went through.

It puts together what `Audit` and `Expect` have found, for programs (JSON), for people (text), and for tests (`verify`).
The file is replaced as a whole, so that a reader never sees half of it, and so that it is there when the client kills
the mock.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from mockagent.message import Burst, Direction, Fate, Message, Peer
from mockagent.scenario.model import Expectation
from mockagent.watch.audit import Audit
from mockagent.watch.expect import Expect
from mockagent.watch.rule import Breach
from mockagent.watch.shown import Shown
from mockagent.watch.stderr import insist
from mockagent.watch.watchers import Near, Verdict, struck
from mockagent.watch.writable import is_stream

#: Between two writings in which only counts have changed lie so many seconds.
_SELDOM: Final = 0.5
#: So much of a message is shown in the text (characters); the JSON has more.
_WIDE: Final = 300
#: So many different faults are named.
_FAULTS: Final = 500

_to_builtins = msgspec.to_builtins


def _open_stream(path: str, flags: int) -> int:
    """Does not wait for the reader of a pipe that nobody reads."""
    opened = os.open(path, flags & ~os.O_CREAT | getattr(os, "O_NONBLOCK", 0))
    os.set_blocking(opened, True)
    return opened


class Report:
    """A tap that counts faults, and the verdict of the other two.

    Give it to `Taps` behind `audit` and `expect`, so that it is flushed with what they know.

    Args:
        audit, expect: also taps.
        scenario: names for the head of the report.
        path: file that is kept up to date by `flush`; None: there is none.
        clock: wall seconds, never going back.
        complain: takes one line when the file cannot be written; the play goes on.
    """

    def __init__(
        self,
        audit: Audit,
        expect: Expect,
        scenario: str = "",
        path: str | None = None,
        clock: Callable[[], float] = time.monotonic,
        complain: Callable[[str], None] = insist,
    ) -> None:
        self.audit = audit
        self.expect = expect
        self._scenario = scenario
        self._path = path
        self._stream = path is not None and is_stream(path)
        self._clock = clock
        self._complain = complain
        self._faults: dict[str, int] = {}
        self._news = 0
        self._written: tuple[int, ...] | None = None
        self._stale: int = -1
        self._last = 0.0

    # --- the verdict

    @property
    def failed(self) -> bool:
        """Whether a rule was broken (and not allowed to be), or an expectation is not met: exit status 3."""
        return self.audit.failed or self.expect.failed

    def as_json(self) -> dict[str, Any]:
        """The report as JSON values: `failed`, `rules`, `breaches`, `expectations`, `faults`, `problems`."""
        verdicts = self.expect.verdicts()
        return {
            "scenario": self._scenario,
            "failed": self.audit.failed or not all(verdict.met for verdict in verdicts),
            "rules": [
                {
                    "id": tally.rule.id,
                    "level": tally.rule.level,
                    "state": tally.state,
                    "met": tally.met,
                    "broken": tally.broken,
                    "allowed": tally.allowed,
                    "sentence": tally.rule.sentence,
                    "source": tally.rule.source,
                }
                for tally in self.audit.tallies.values()
            ],
            "breaches": _to_builtins(self.audit.breaches),
            "expectations": _to_builtins(verdicts),
            "faults": [{"fault": fault, "fired": count} for fault, count in self._faults.items()],
            "problems": list(self.audit.problems),
        }

    def text(self) -> str:
        """The report for people: what the client did wrong first, what it did right in one line."""
        verdicts = self.expect.verdicts()
        missed = [verdict for verdict in verdicts if not verdict.met]
        paragraphs = [self._headline(missed)]
        paragraphs += [_breach(breach) for breach in self.audit.breaches if not breach.allowed]
        paragraphs += [_missed(verdict) for verdict in missed]
        paragraphs.append("\n".join(self._foot(verdicts)))
        return "\n\n".join(paragraphs)

    def restart(self, scenario: str, expectations: Iterable[Expectation]) -> None:
        """Forgets every verdict, those of `audit` and `expect` too."""
        self._scenario = scenario
        self._faults.clear()
        self.audit.restart()
        self.expect.restart(expectations)

    def verify(self) -> None:
        """Raises an AssertionError with the text of the report if the client failed."""
        if self.failed:
            raise AssertionError(self.text())

    def _headline(self, missed: list[Verdict]) -> str:
        name = f" with {self._scenario}" if self._scenario else ""
        broken = sum(tally.broken > 0 for tally in self.audit.tallies.values())
        if not broken and not missed:
            return f"The client passed{name}."
        parts = []
        if broken:
            parts.append(f"broke {broken} rule{'s' if broken > 1 else ''}")
        if missed:
            parts.append(f"missed {len(missed)} expectation{'s' if len(missed) > 1 else ''}")
        return f"The client failed{name}: it {' and '.join(parts)}."

    def _foot(self, verdicts: list[Verdict]) -> list[str]:
        states: dict[str, int] = {}
        for tally in self.audit.tallies.values():
            states[tally.state] = states.get(tally.state, 0) + 1
        lines = []
        if states:
            order = ("met", "broken", "allowed", "not exercised")
            lines.append("rules: " + ", ".join(f"{states[state]} {state}" for state in order if state in states))
        hidden = sum(tally.broken + tally.allowed - len(tally.breaches) for tally in self.audit.tallies.values())
        if hidden:
            lines.append(f"  {hidden} more breaches of the same rules are counted and not shown")
        if verdicts:
            met = sum(verdict.met for verdict in verdicts)
            lines.append(f"expectations: {met} of {len(verdicts)} met")
        if self._faults:
            lines.append("faults that fired: " + "; ".join(_fired(*fault) for fault in self._faults.items()))
        lines += [f"mockagent has an error: {problem}" for problem in self.audit.problems]
        return lines or ["nothing was asked of it"]

    # --- the file

    def flush(self) -> None:
        """Brings the file up to date: at once when the verdict has changed, every half second when only counts have.

        Cheap when nothing has changed. A pipe or a device gets the last version only.
        """
        if self._path is None or self._stream:
            return
        news = self.audit.changes + self.expect.changes + self._news
        if news == self._stale and self._written is not None:
            return
        verdict = self._verdict()
        now = self._clock()
        if verdict == self._written and now - self._last < _SELDOM:
            return
        self._stale = news
        self._written = verdict
        self._last = now
        self.write(self._path)

    def write(self, path: str) -> None:
        """Replaces a file by the report. If that cannot be done, one line says so, and no more is tried.

        A pipe or a device (`/dev/stderr`) is written to: a file in its place would be the end of it.
        """
        text = msgspec.json.format(msgspec.json.encode(self.as_json()), indent=2) + b"\n"
        try:
            if is_stream(path):
                with open(path, "wb", opener=_open_stream) as stream:
                    stream.write(text)
                return
            beside = f"{path}.{os.getpid()}.part"
            try:
                with open(beside, "wb") as file:
                    file.write(text)
                os.replace(beside, path)
            except OSError:
                with contextlib.suppress(OSError):
                    os.unlink(beside)
                raise
        except OSError as error:
            self._path = None
            self._complain(f"mockagent: no report, cannot write {path}: {error.strerror}")

    def _verdict(self) -> tuple[int, ...]:
        return (
            self.audit.changes,
            len(self._faults),
            *(verdict.met for verdict in self.expect.verdicts()),
        )

    # --- Tap

    def saw(self, message: Message, direction: Direction, fate: Fate) -> None:
        """See `Tap`."""
        if direction == "in":
            self._news += 1

    def saw_burst(self, burst: Burst) -> None:
        """See `Tap`."""

    def malformed(self, peer: Peer, data: bytes, why: str) -> None:
        """See `Tap`."""
        self._news += 1

    def note(self, event: str, peer: Peer | None, session: str | None, detail: dict[str, Any]) -> None:
        """See `Tap`. Faults that have fired are counted by what they act on, what they do, and where they stand."""
        if not struck(event, detail):
            return
        self._news += 1
        name = f"{detail.get('at', 'fault')}: {', '.join(detail.get('effects', ()))}"
        if place := detail.get("place"):
            name += f" ({place})"
        if name in self._faults or len(self._faults) < _FAULTS:
            self._faults[name] = self._faults.get(name, 0) + 1

    def lost(self, peer: Peer, count: int) -> None:
        """See `Tap`."""

    def close(self) -> None:
        """See `Tap`. Writes the last version; close `audit` and `expect` before."""
        if self._path is not None:
            self.write(self._path)


# --- words


def _breach(breach: Breach) -> str:
    where = f"session {breach.session} on {breach.peer}" if breach.session is not None else breach.peer
    lines = [
        f"{breach.rule} ({breach.level}): {breach.sentence}",
        f"  {breach.why} ({where})",
        f"  spec: {breach.source}",
    ]
    marked = {shown.line for shown in breach.shown}
    context = [shown for shown in (breach.before, breach.after) if shown is not None and shown.line not in marked]
    for shown in sorted((*breach.shown, *context), key=lambda shown: shown.line):
        lines.append(_line(shown, ">" if shown.line in marked else " "))
    return "\n".join(lines)


def _missed(verdict: Verdict) -> str:
    place = f" ({verdict.place})" if verdict.place else ""
    lines = [f"expected {verdict.expectation}{place}", f"  {verdict.why}"]
    lines += [_line(shown, ">") for shown in verdict.shown]
    for number, near in enumerate(verdict.near):
        if number == 0:
            lines.append("  what came closest:")
        lines += _near(near)
    return "\n".join(lines)


def _near(near: Near) -> list[str]:
    lines = [_line(near.message, " "), f"      {near.why}"]
    width = max((len(difference.pointer) for difference in near.differences), default=0)
    for difference in near.differences:
        lines.append(f"        {difference.pointer:{width}}  wanted {difference.wanted}, got {difference.got}")
    return lines


def _line(shown: Shown, mark: str) -> str:
    who = "client" if shown.direction == "in" else "mock  "
    text = shown.text if len(shown.text) <= _WIDE else f"{shown.text[:_WIDE]}..."
    return f"  {mark} #{shown.line} {who} {shown.kind}  {_visible(text)}".rstrip()


def _visible(text: str) -> str:
    """Control characters would play with the reader's terminal."""
    return text if text.isprintable() else "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)


def _fired(fault: str, count: int) -> str:
    return fault if count == 1 else f"{fault} ({count} times)"
