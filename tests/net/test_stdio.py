"""Standard input and output: over pipes, sockets, files and a terminal, polled and in threads."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest
import trio
import trio.testing

from mockagent.net.channel import Broken, Bytes, Cut
from mockagent.net.lines import LineReader
from mockagent.net.stdio import StdioChannel, StdioStreams, ThreadedReceiveStream, ThreadedSendStream, open_stdio

BOTH = pytest.mark.parametrize("threaded", [False, True], ids=["polled", "threaded"])

if sys.platform == "win32":
    pytest.skip("needs POSIX file descriptors", allow_module_level=True)


class Pipes:
    """Three pipes in the place of the standard files; the test holds the other ends."""

    def __init__(self) -> None:
        self.stdin, self.feed = os.pipe()
        self.drain, self.stdout = os.pipe()
        self.log, self.stderr = os.pipe()
        self._fds = {self.stdin, self.feed, self.drain, self.stdout, self.log, self.stderr}

    def open(self, threaded: bool | None) -> StdioStreams:
        return open_stdio(threaded=threaded, stdin=self.stdin, stdout=self.stdout, stderr=self.stderr)

    def close(self, *fds: int) -> None:
        for fd in fds or tuple(self._fds):
            os.close(fd)
            self._fds.remove(fd)


@pytest.fixture
def pipes() -> Iterator[Pipes]:
    pipes = Pipes()
    yield pipes
    pipes.close()


@BOTH
async def test_lines_come_in_until_the_end(pipes: Pipes, threaded: bool) -> None:
    with pipes.open(threaded) as stdio:
        os.write(pipes.feed, b"one\ntwo\r\nla")
        reader = LineReader(stdio.receive)
        assert [await anext(reader), await anext(reader)] == [b"one", b"two"]
        os.write(pipes.feed, b"st")
        pipes.close(pipes.feed)
        assert [line async for line in reader] == [b"last"]


@BOTH
async def test_bytes_go_out_in_order(pipes: Pipes, threaded: bool) -> None:
    data = bytes(range(256)) * 2000  # more than a pipe holds
    with pipes.open(threaded) as stdio:
        channel = StdioChannel(stdio.send)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(channel.write, [Bytes(b"<"), Bytes(data, alone=True), Bytes(b">")])
            got = b""
            while len(got) < len(data) + 2:
                got += await trio.to_thread.run_sync(os.read, pipes.drain, 2**16)
        assert got == b"<" + data + b">"


@BOTH
async def test_stray_writes_to_the_old_files_stay_out_of_the_protocol(pipes: Pipes, threaded: bool) -> None:
    with pipes.open(threaded) as stdio:
        os.write(pipes.stdout, b"stray")
        os.write(pipes.feed, b"for the protocol\n")
        assert os.read(pipes.stdin, 10) == b""
        assert await anext(LineReader(stdio.receive)) == b"for the protocol"
        await StdioChannel(stdio.send).write([Bytes(b"{}\n")])
        assert os.read(pipes.drain, 10) == b"{}\n"
        assert os.read(pipes.log, 10) == b"stray"


@BOTH
@pytest.mark.parametrize("how", ["close", "half", "drop", "reset"])
async def test_every_ending_closes_the_pipe(pipes: Pipes, threaded: bool, how: str) -> None:
    with pipes.open(threaded) as stdio:
        channel = StdioChannel(stdio.send)
        await channel.write([Bytes(b"a"), Cut(how)])  # type: ignore[arg-type]  # all of them are in the list
        assert os.read(pipes.drain, 10) == b"a"
        assert os.read(pipes.drain, 10) == b""
        await channel.close(Cut())
        with pytest.raises(Broken):
            await channel.write([Bytes(b"b")])


@BOTH
async def test_a_reader_that_left_breaks_the_channel(pipes: Pipes, threaded: bool) -> None:
    with pipes.open(threaded) as stdio:
        pipes.close(pipes.drain)
        with pytest.raises(Broken):
            await StdioChannel(stdio.send).write([Bytes(b"a")])


async def test_pipes_are_polled_and_blocking_again_afterwards(pipes: Pipes) -> None:
    copies = [os.dup(pipes.stdin), os.dup(pipes.stdout)]
    with pipes.open(None) as stdio:
        assert isinstance(stdio.receive, trio.lowlevel.FdStream)
        assert isinstance(stdio.send, trio.lowlevel.FdStream)
        assert [os.get_blocking(fd) for fd in copies] == [False, False]
    assert [os.get_blocking(fd) for fd in copies] == [True, True]
    for fd in copies:
        os.close(fd)


async def test_sockets_are_polled_unless_one_serves_both_ways() -> None:
    here, there = socket.socketpair()
    other, _far = socket.socketpair()
    with here, there, other, _far:
        fds = [os.dup(here.fileno()), os.dup(other.fileno()), os.dup(here.fileno()), os.open(os.devnull, os.O_WRONLY)]
        with open_stdio(stdin=fds[0], stdout=fds[1], stderr=fds[3]) as stdio:
            assert isinstance(stdio.receive, trio.lowlevel.FdStream)
        os.dup2(here.fileno(), fds[0])
        with open_stdio(stdin=fds[0], stdout=fds[2], stderr=fds[3]) as stdio:
            assert isinstance(stdio.receive, ThreadedReceiveStream)
            assert isinstance(stdio.send, ThreadedSendStream)
            assert os.get_blocking(here.fileno())
        for fd in fds:
            os.close(fd)


async def test_output_that_stderr_shares_is_left_blocking(pipes: Pipes) -> None:
    os.dup2(pipes.stdout, pipes.stderr)
    with pipes.open(None) as stdio:
        assert isinstance(stdio.receive, trio.lowlevel.FdStream)
        assert isinstance(stdio.send, ThreadedSendStream)
        assert os.get_blocking(pipes.stderr)


async def test_files_closed_by_the_parent_read_as_empty(pipes: Pipes) -> None:
    pipes.close(pipes.stdin, pipes.stderr)
    stdin, stderr = pipes.stdin, pipes.stderr
    with open_stdio(stdin=stdin, stdout=pipes.stdout, stderr=stderr) as stdio:
        assert [line async for line in LineReader(stdio.receive)] == []
    os.close(stdin)


async def test_a_cancelled_receive_in_a_thread_loses_nothing(pipes: Pipes) -> None:
    with pipes.open(True) as stdio:
        for text in (b"one", b"two"):
            with trio.CancelScope() as scope:
                scope.cancel()
                await stdio.receive.receive_some()
            os.write(pipes.feed, text)
            assert await stdio.receive.receive_some() == text


async def test_small_receives_get_the_same_bytes(pipes: Pipes) -> None:
    with pipes.open(True) as stdio:
        os.write(pipes.feed, b"abc")
        assert [await stdio.receive.receive_some(2), await stdio.receive.receive_some(2)] == [b"ab", b"c"]


@BOTH
async def test_closing_wakes_a_reader(pipes: Pipes, threaded: bool) -> None:
    with pipes.open(threaded) as stdio:
        async with trio.open_nursery() as nursery:

            async def read() -> None:
                assert [line async for line in LineReader(stdio.receive)] == []

            nursery.start_soon(read)
            await trio.testing.wait_all_tasks_blocked()
            stdio.close()


@BOTH
async def test_a_full_pipe_can_be_cancelled_and_stays_broken(pipes: Pipes, threaded: bool) -> None:
    with pipes.open(threaded) as stdio:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stdio.send.send_all, bytes(10**6))
            await trio.testing.wait_all_tasks_blocked(0.01)
            nursery.cancel_scope.cancel()
        if threaded:
            with pytest.raises(trio.BrokenResourceError):
                await stdio.send.send_all(b"a")
        stdio.close()
        while await trio.to_thread.run_sync(os.read, pipes.drain, 2**20):
            pass  # ends only if the file was closed, behind the write left behind in its thread


ECHO = """
import trio
import trio.testing
from mockagent.net.stdio import LineReader, StdioChannel, open_stdio
from mockagent.net.channel import Bytes

async def main():
    with open_stdio() as stdio:
        print("stray")
        channel = StdioChannel(stdio.send)
        await channel.write([Bytes(b"ready\\n")])
        async for line in LineReader(stdio.receive):
            await channel.write([Bytes(line + b"\\n")])

trio.run(main)
"""


def test_a_process_echoes_over_pipes_and_keeps_prints_apart() -> None:
    done = subprocess.run([sys.executable, "-c", ECHO], input=b"a\nb\n", capture_output=True, timeout=60, check=True)
    assert done.stdout == b"ready\na\nb\n"
    assert done.stderr == b"stray\n"


def test_a_process_takes_its_input_from_a_file(tmp_path: os.PathLike[str]) -> None:
    path = os.path.join(tmp_path, "in")
    with open(path, "wb") as file:
        file.write(b"a\nb")
    with open(path, "rb") as file:
        done = subprocess.run([sys.executable, "-c", ECHO], stdin=file, capture_output=True, timeout=60, check=True)
    assert done.stdout == b"ready\na\nb\n"


def test_a_killed_process_leaves_the_terminal_blocking() -> None:
    import pty
    import tty

    master, slave = pty.openpty()
    tty.setraw(slave)
    process = subprocess.Popen([sys.executable, "-c", ECHO], stdin=slave, stdout=slave, stderr=slave)
    try:
        os.write(master, b"hello\n")
        got = b""
        while b"hello\n" not in got:
            got += os.read(master, 1000)
        assert b"ready\n" in got
        assert os.get_blocking(slave)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert os.get_blocking(slave)
    os.close(master)
    os.close(slave)
