"""The journal on disk: one JSON line for every message, malformed input and event, in the order in which they happened.

It sees what others do and cannot fail them: when the file cannot be written, one line on stderr says so and the play
goes on. Lines are buffered; `flush` writes whole lines only, so that what was flushed survives the end of the process
however it comes.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any, Final

import msgspec

from mockagent.message import Burst, Direction, Fate, Message, Peer
from mockagent.watch.entries import Entry, Stamp, encode_line, head_of, json_text, place_of, printable
from mockagent.watch.redact import Redactor
from mockagent.watch.stderr import insist

#: So much is held before it is written without being asked (bytes).
BUFFERED: Final = 256 * 1024
#: A burst is put together in pieces of so many messages, which stay in the processor's cache.
_AT_ONCE: Final = 1000


class Journal:
    """A tap that writes a file.

    Args:
        path: the file; an older one of that name is emptied.
        clock: the time now, seconds since the epoch.
        redact: masks secrets.
        complain: takes the one line that says why nothing more is written.
    """

    def __init__(
        self,
        path: str,
        clock: Callable[[], float],
        redact: Redactor | None = None,
        complain: Callable[[str], None] = insist,
    ) -> None:
        self._path = path
        self._clock = clock
        self._redact = redact or Redactor()
        self._complain = complain
        self._stamp = Stamp()
        self._seq = 0
        self._lines: list[bytes] = []
        self._size = 0
        self._fd: int | None = None
        try:
            # Appending keeps two processes that share a journal by mistake from writing over each other.
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as error:
            complain(f"mockagent: no journal, cannot write {path}: {error.strerror}")

    def saw(self, message: Message, direction: Direction, fate: Fate) -> None:
        """See `Tap`."""
        if self._fd is None:
            return
        head = head_of(message, direction, fate)
        if message.http is not None:
            head["http"] = self._redact.head(message.http)
        if message.data is None and not message.raw:
            self._line(head)
            return
        try:
            text = self._redact.text(message)
        except (UnicodeEncodeError, RecursionError, TypeError):
            self._line(head | {"message": message.data})
            return
        spliced = json_text(text, message, direction)
        if spliced is None:
            self._line(head | {"text": printable(text)})
        else:
            self._line(head, b',"message":' + spliced + b"}\n")

    def saw_burst(self, burst: Burst) -> None:
        """See `Tap`. Costs a fraction of a microsecond per message: the common parts are made once."""
        if self._fd is None:
            return
        texts = self._redact.texts(burst.kind, burst.texts)
        common = place_of(burst.peer, "out") | {"session": burst.session, "kind": burst.kind, "origin": burst.origin}
        start = b'{"time":"%b","seq":' % self._stamp.iso(self._clock()).encode()
        middle = b"," + encode_line(common)[1:-1] + b',"message":'
        for first in range(0, len(texts), _AT_ONCE):
            some = texts[first : first + _AT_ONCE]
            pieces = [b"}\n" + start] * (4 * len(some))
            pieces[0] = start
            pieces[1::4] = [b"%d" % number for number in range(self._seq + 1, self._seq + len(some) + 1)]
            pieces[2::4] = [middle] * len(some)
            pieces[3::4] = some
            pieces.append(b"}\n")
            self._seq += len(some)
            self._put(b"".join(pieces))

    def malformed(self, peer: Peer, data: bytes, why: str) -> None:
        """See `Tap`."""
        if self._fd is None:
            return
        shown = encode_line(printable(data))
        head = encode_line({"malformed": why})[1:-1]
        self._line(place_of(peer, "in"), b"," + head + b',"bytes":' + self._redact.plain(shown) + b"}\n")

    def note(self, event: str, peer: Peer | None, session: str | None, detail: dict[str, Any]) -> None:
        """See `Tap`."""
        if self._fd is None:
            return
        line: dict[str, Any] = {"event": event}
        if peer is not None:
            line |= {"peer": peer.id, "protocol": peer.protocol, "transport": peer.transport}
        if session is not None:
            line["session"] = session
        tail = b"}\n"
        if detail:
            tail = b',"detail":' + self._redact.plain(encode_line(detail)) + tail
        self._line(line, tail)

    def lost(self, peer: Peer, count: int) -> None:
        """See `Tap`. Lines once written stay; one more says that they did not leave."""
        self.note("lost", peer, None, {"count": count})

    def flush(self) -> None:
        """Writes what is buffered. Does nothing, cheaply, when nothing is."""
        if self._fd is None or not self._lines:
            return
        data = memoryview(b"".join(self._lines))
        self._lines.clear()
        self._size = 0
        done = 0
        try:
            while done < len(data):
                done += os.write(self._fd, data[done:])
        except OSError as error:
            self._give_up(data, done, error)

    def close(self) -> None:
        """See `Tap`."""
        self.flush()
        if self._fd is not None:
            fd, self._fd = self._fd, None
            os.close(fd)

    def _line(self, head: dict[str, Any], tail: bytes = b"}\n") -> None:
        self._seq += 1
        first = b'{"time":"%b","seq":%d,' % (self._stamp.iso(self._clock()).encode(), self._seq)
        self._put(first + encode_line(head)[1:-1] + tail)

    def _put(self, lines: bytes) -> None:
        self._lines.append(lines)
        self._size += len(lines)
        if self._size >= BUFFERED:
            self.flush()

    def _give_up(self, data: memoryview, done: int, error: OSError) -> None:
        """Takes back the half of a line that may have been written, says why, and is silent from then on."""
        fd, self._fd = self._fd, None
        assert fd is not None
        torn = done - (bytes(data[:done]).rfind(b"\n") + 1)
        with contextlib.suppress(OSError):  # a pipe cannot be cut; readers skip a torn last line
            if torn:
                os.ftruncate(fd, os.fstat(fd).st_size - torn)
        with contextlib.suppress(OSError):
            os.close(fd)
        self._complain(f"mockagent: the journal ends here, cannot write {self._path}: {error.strerror}")


def read_journal(path: str) -> list[Entry]:
    """Reads a journal.

    A last line without its end is left out: the process was killed while it wrote it. Messages that an event `lost`
    takes back have the fate `lost`.

    Args:
        path: a file that `Journal` wrote, or lines of `{time, direction, message}` from elsewhere.

    Raises:
        OSError: the file cannot be read.
        ValueError: a line is no JSON object; the text names file and line.
    """
    with open(path, "rb") as file:
        content = file.read()
    entries: list[Entry] = []
    lines = content.split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entry = _entry(line)
        except ValueError as error:
            if number == len(lines):  # no line end behind it
                break
            raise ValueError(f"{path}:{number}: not a line of a journal: {error}") from None
        if not entry.seq:
            entry.seq = number
        if entry.event == "lost":
            take_back(entries, entry.peer, entry.detail.get("count", 0))
        entries.append(entry)
    return entries


def take_back(entries: list[Entry], peer: str | None, count: int) -> None:
    """Marks the last outgoing messages of a connection as lost."""
    for entry in reversed(entries):
        if count <= 0:
            break
        if entry.direction == "out" and entry.peer == peer and entry.fate != "unsent":
            entry.fate = "lost"
            count -= 1


_decode_entry = msgspec.json.Decoder(Entry).decode


def _entry(line: bytes) -> Entry:
    try:
        return _decode_entry(line)
    except (msgspec.MsgspecError, RecursionError):
        # Lone surrogates are in the grammar of JSON; only the slower reader takes them.
        import json

        try:
            return msgspec.convert(json.loads(line), Entry)
        except (ValueError, RecursionError) as error:
            raise ValueError(str(error)) from None
