"""The scenarios about lines on stdout, each played to a client that looks at the bytes."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest
import trio

from mockagent.scenario.load import load
from tests.catalogue.judged import Court, spawned, updates
from tests.catalogue.memory import framing_problems, over_lines
from tests.faults.wire import Client, kinds, said

Check = Callable[[Client], Awaitable[None]]
CHECKS: dict[str, Check] = {}
WORDS = ["One. ", "Two. ", "Three."]


def shows(name: str) -> Callable[[Check], Check]:
    """Registers what a scenario has to show."""

    def register(check: Check) -> Check:
        CHECKS[name] = check
        return check

    return register


async def lines(client: Client, text: str = "go") -> list[bytes]:
    """The lines of one turn, without their LF, up to the reply's."""
    session = await client.new()
    before = len(client.raw.everything)
    await client.turn(session, text)
    return client.raw.everything[before:].split(b"\n")


@shows("stdout-prefix")
async def _(client: Client) -> None:
    await client.request("initialize", protocolVersion=1)
    [line] = [await client.next()]
    assert line.startswith(b"\x1b[?25l\x1b[0m{")
    assert json.loads(line[line.index(b"{") :])["result"]["protocolVersion"] == 1
    await client.request("session/new", cwd="/a", mcpServers=[])
    session = (await client.next())["result"]["sessionId"]
    await client.prompt(session)
    seen = [await client.next() for _ in range(4)]
    assert kinds(seen) == ["agent_message_chunk", "?", "agent_message_chunk", "?"]
    assert said([json.loads(seen[1].removeprefix(b"\x1b]0;thinking\x07"))]) == ["Two. "]
    assert json.loads(seen[3].removeprefix(b"\x1b[?25h"))["result"] == {"stopReason": "end_turn"}


@shows("stdout-crlf")
async def _(client: Client) -> None:
    got = await lines(client)
    assert said(client.seen) == WORDS
    assert all(line.endswith(b"}\r") for line in client.raw.everything.split(b"\n")[:-1])
    assert len(got) >= 5


@shows("blank-lines")
async def _(client: Client) -> None:
    got = await lines(client)
    assert said(client.seen) == WORDS
    assert [line for line in got[:9] if not line.strip()] == [b"", b"", b"  \t", b"\r", b"", b""]


@shows("unterminated-line")
async def _(client: Client) -> None:
    session = await client.new()
    await client.prompt(session)
    assert said([await client.next()]) == ["The next line never ends. "]
    with trio.move_on_after(600) as waiting:
        await client.next()
    assert waiting.cancelled_caught
    assert len(client.raw.held) == 2_000_000
    assert b"\n" not in client.raw.held


@shows("slow-drip")
async def _(client: Client) -> None:
    session = await client.new()
    before, start = len(client.raw.pieces), trio.current_time()
    await client.turn(session)
    assert said(client.seen) == ["Drip, ", "drop, ", "done."]
    pieces = client.raw.pieces[before:]
    assert len(pieces) >= 3 * 50 + 20
    assert max(len(data) for _, data in pieces[:170]) < 10
    assert trio.current_time() - start == pytest.approx((3 * 49 + 19) * 0.004, abs=0.05)


@shows("two-messages-one-line")
async def _(client: Client) -> None:
    session = await client.new()
    seen = await client.turn(session)
    assert kinds(seen) == ["agent_message_chunk", "?", "agent_message_chunk", "result"]
    two, three = seen[1].replace(b"}{", b"}\n{").split(b"\n")
    assert said([json.loads(two), json.loads(three)]) == ["Two, and no line end. ", "Three. "]


@shows("control-characters")
async def _(client: Client) -> None:
    await client.turn(await client.new())
    text = "".join(said(client.seen))
    for wanted in ("\0", "\x1b[31m", "\a", "\b\b\b", "\x1b]0;owned", "\x9b31m", "\u202e", "\u2028"):
        assert wanted in text
    shown = json.dumps([one for one in client.seen if kinds([one])[0].startswith("tool_call")])
    assert r"make \u001b[1mall\u001b[0m\r" in shown
    assert r"\u001b[2J\u001b[Hcleared\r\n\u0000\u007f" in shown
    assert not {byte for byte in client.raw.everything if byte < 0x20} - {0x0A}, "JSON escapes them"


@shows("lone-surrogate")
async def _(client: Client) -> None:
    await client.turn(await client.new())
    assert said(client.seen) == ["Before. ", "high \ud83d, low \ude00, turned \ude00\ud83d. ", "After."]
    assert rb"high \ud83d, low \ude00" in client.raw.everything
    client.raw.everything.decode()  # the bytes themselves are good UTF-8


@shows("cumulative-output")
async def _(client: Client) -> None:
    progress = updates(await client.turn(await client.new()), "tool_call_update")
    shown = [update["content"][0]["content"]["text"] for update in progress if update.get("content")]
    assert len(shown) >= 200
    assert all(later.startswith(earlier) for earlier, later in pairwise(shown))
    assert len(shown[-1]) == 20_000


@shows("bom-at-start")
async def _(client: Client) -> None:
    await client.request("initialize", protocolVersion=1)
    await client.next()
    assert client.raw.everything.startswith(b'\xef\xbb\xbf{"jsonrpc"')
    assert said(await client.turn((await client.call("session/new", cwd="/a", mcpServers=[]))["result"]["sessionId"]))


@shows("invalid-utf8")
async def _(client: Client) -> None:
    seen = await client.turn(await client.new())
    assert [isinstance(one, bytes) for one in seen] == [False, True, False, False]
    with pytest.raises(UnicodeDecodeError):
        seen[1].decode()
    assert said([json.loads(seen[1].decode(errors="replace"))]) == ["Gr\ufffd"]


@shows("escaped-unicode")
async def _(client: Client) -> None:
    seen = await client.turn(await client.new())
    assert client.raw.everything.isascii()
    assert rb"\ud83c\udf89" in client.raw.everything.lower()
    assert said(seen) == ["Grüße, 東京, 🎉. ", "Done."]
    assert updates(seen, "tool_call")[0]["title"] == "Über 🗂"


@shows("duplicate-keys")
async def _(client: Client) -> None:
    seen = await client.turn(await client.new())
    assert said(seen) == ["Before. ", "Last. ", "After."], "as Python reads it"
    assert b'"text":"First. ","text":"Last. "' in client.raw.everything


@shows("batch")
async def _(client: Client) -> None:
    seen = await client.turn(await client.new())
    assert [isinstance(one, list) for one in seen] == [False, True, False, False]
    assert said(seen[1]) == ["One. ", "Two. "]


@pytest.mark.parametrize("name", CHECKS)
async def test_a_scenario_about_lines_does_what_it_promises(autojump_clock: Any, name: str) -> None:
    """The marks are judged too: an allowed scenario keeps to the schema, the rules and the framing of stdio."""
    court = Court(f"stdio/{name}")
    async with over_lines(court) as client:
        await CHECKS[name](client)
    framing = framing_problems(client.raw.everything)
    if load(court.path).legality == "allowed":
        assert not framing
    if not framing:
        court.verdict(None)


@pytest.mark.parametrize("name", ["oversized-line", "split-utf8", "stdout-noise", "truncated-json"])
async def test_the_marks_of_the_others_hold(autojump_clock: Any, name: str) -> None:
    """Those whose behaviour is proven beside the faults that they use."""
    court = Court(f"stdio/{name}")
    async with over_lines(court) as client:
        await client.request("initialize", protocolVersion=1)
        await client.until(lambda message: isinstance(message, dict))
        reply = await client.call("session/new", cwd="/a", mcpServers=[])
        await client.turn(reply["result"]["sessionId"])
    assert bool(framing_problems(client.raw.everything)) == (load(court.path).legality == "violation")
    if load(court.path).legality == "allowed":
        court.verdict(None)


async def test_a_flood_on_stderr_stands_between_two_messages() -> None:
    async with spawned("stdio/stderr-flood") as (child, client):
        session = await client.new()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(child.stderr.rest)
            await client.turn(session)
            await child.leave()
        assert said(client.seen) == ["Before the flood. ", "After the flood."]
        assert child.stderr.everything.count(b"[warn] retrying") >= 4_000_000 // 36
        assert not framing_problems(child.raw.everything)
