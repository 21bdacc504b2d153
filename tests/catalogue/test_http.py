"""The scenarios about AAP over HTTP, each played to a client that looks at the bytes of a real socket."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

import pytest
import trio

from mockagent.net.sse import SseComment, SseParser
from mockagent.scenario.load import load
from tests.catalogue.aap_judge import AapJudge
from tests.catalogue.judged import FOLDER
from tests.faults.wire import RESET, Aap, Reply, Served, serving

Check = Callable[["Play"], Awaitable[None]]
CHECKS: dict[str, Check] = {}


def shows(name: str) -> Callable[[Check], Check]:
    """Registers what a scenario has to show."""

    def register(check: Check) -> Check:
        CHECKS[name] = check
        return check

    return register


class Play:
    """A scenario that is being served, and what is judged of it.

    Attributes:
        aap: a client.
        session: its session.
        ended: how the last connection that broke has ended.
    """

    def __init__(self, served: Served, aap: Aap, session: str) -> None:
        self.served = served
        self.aap = aap
        self.session = session
        self.judge = AapJudge()
        self.ended: bytes | None = None

    async def turn(self, text: str = "go", stream: str = "delta") -> Reply | None:
        """A turn; None if its connection ends without an answer. The next one takes a new connection then."""
        await self.aap.begin(self.session, text, stream)
        return await self._judged()

    async def good(self, text: str = "go") -> Reply:
        """A turn that is answered."""
        reply = await self.turn(text)
        assert reply is not None
        return reply

    async def post(self, *messages: Any, **more: Any) -> Reply:
        """A turn with messages of one's own."""
        body = {"messages": list(messages), "stream": "delta", **more}
        await self.aap.ask("POST", f"/sessions/{quote(self.session, safe='')}/turns", body)
        reply = await self._judged()
        assert reply is not None
        return reply

    async def _judged(self) -> Reply | None:
        reply = await self.aap.reply()
        self.judge.turn(reply)
        if reply is None or not reply.complete:
            await self.aap.raw.rest()
            self.ended = self.aap.raw.ended
            self.aap = await self.served.aap()
        return reply

    async def get(self, path: str) -> Reply:
        return await self.aap.call("GET", path)

    async def history(self) -> list[Any]:
        """All messages of the session."""
        reply = await self.get(f"/sessions/{quote(self.session, safe='')}/history?type=full")
        messages: list[Any] = reply.json["history"]["full"]
        return messages


def names(reply: Reply) -> list[str]:
    """The names of a stream's events."""
    return [name for name, _ in reply.events]


def stops(reply: Reply) -> list[str]:
    """The stop reasons of a stream."""
    return [data["stopReason"] for name, data in reply.events if name == "turn_stop" and isinstance(data, dict)]


def calls(reply: Reply) -> list[Any]:
    """The data of a stream's tool calls."""
    return [data for name, data in reply.events if name == "tool_call"]


# --- ends


@shows("no-turn-stop")
async def _(play: Play) -> None:
    for complete in (True, False, True):
        reply = await play.good()
        assert names(reply) == ["turn_start", "text_delta", "text_delta"]
        assert "".join(reply.told) == "This is the whole answer."
        assert reply.complete is complete
        assert complete or play.ended == RESET


@shows("aap-stop-reasons")
async def _(play: Play) -> None:
    replies = [await play.good() for _ in range(4)]
    assert [stops(reply) for reply in replies] == [["error"], ["max_tokens"], ["refusal"], ["end_turn"]]
    assert all(reply.told for reply in replies)


@shows("two-turn-stops")
async def _(play: Play) -> None:
    reply = await play.good()
    assert reply.complete
    assert stops(reply) == ["end_turn", "error"]


@shows("events-after-stop")
async def _(play: Play) -> None:
    reply = await play.good()
    assert reply.complete
    assert names(reply)[1:] == ["text_delta", "turn_stop", "text_delta", "tool_call"]


@shows("connection-reset")
async def _(play: Play) -> None:
    assert await play.turn(stream="none") is None
    assert play.ended == RESET
    assert [message["role"] for message in await play.history()] == ["user", "assistant"]
    reply = await play.good()
    assert (reply.told, reply.complete, play.ended) == (["The work is "], False, RESET)
    assert stops(await play.good()) == ["end_turn"]


@shows("client-stops-reading")
async def _(play: Play) -> None:
    start = trio.current_time()
    await play.aap.begin(play.session)
    await play.aap.raw.until(b"And on. ")
    play.served.streams[-1].socket.close()
    play.aap = await play.served.aap()
    await trio.sleep(0.1)
    text = str(await play.history())
    assert "And on. " in text
    assert "The end." not in text
    assert trio.current_time() - start < 1
    assert play.served.seen.of("left") == [{"session": play.session}]
    reply = await play.good()
    assert reply.told[-1] == "The end."
    assert len(reply.told) == 201


# --- odd events, and odd ways to send good ones


@shows("sse-bad-json")
async def _(play: Play) -> None:
    events = (await play.good()).events
    assert [data for name, data in events if name == "text_delta"] == [
        {"delta": "Before. "}, '{"delta": "Lost. ', {"delta": "After."},
    ]  # fmt: skip


@shows("sse-unknown-event")
async def _(play: Play) -> None:
    reply = await play.good()
    assert names(reply)[1:-1] == ["text_delta", "mood", "message", "text_delta"]
    assert reply.told == ["Before. ", "After."]
    assert b'\n\ndata: {"delta": "Nameless. "}\n\n' in reply.body


@shows("sse-empty-data")
async def _(play: Play) -> None:
    reply = await play.good()
    assert b"\n\nevent: text_delta\ndata:\n\nevent: turn_stop\n\nevent: text_delta\n" in reply.body
    assert [data for name, data in reply.events if name == "text_delta"] == [
        {"delta": "Before. "}, "", {"delta": "After."},
    ]  # fmt: skip
    assert stops(reply) == ["end_turn"]


@shows("sse-no-final-blank-line")
async def _(play: Play) -> None:
    reply = await play.good()
    assert reply.complete
    assert reply.body.endswith(b'\n\nevent: turn_stop\ndata: {"stopReason":"end_turn"}\n')
    assert names(reply) == ["turn_start", "text_delta"]


@shows("sse-split-utf8")
async def _(play: Play) -> None:
    reply = await play.good()
    assert "".join(reply.told) == "Grüße aus Zürich. 東京は晴れです。 🎉 Done."
    cut = [chunk for chunk in reply.chunks if chunk[-1] >= 0xC0]
    assert len(cut) == 3


@shows("sse-no-charset")
async def _(play: Play) -> None:
    replies = [await play.good() for _ in range(2)]
    assert [reply.headers["content-type"] for reply in replies] == [
        "text/event-stream", "text/event-stream;charset=UTF-8",
    ]  # fmt: skip
    assert all("Grüße, 東京, שלום, 🎉.".encode() in reply.body for reply in replies)


@shows("sse-heartbeats")
async def _(play: Play) -> None:
    start = trio.current_time()
    reply = await play.good()
    assert trio.current_time() - start == pytest.approx(1, abs=0.1)
    found = [one for one in SseParser(comments=True).feed(reply.body) if isinstance(one, SseComment)]
    assert [comment.text for comment in found] == ["keep-alive"] * 20
    assert reply.told == ["One moment. ", "Here it is."]


@shows("sse-silence")
async def _(play: Play) -> None:
    await play.aap.begin(play.session)
    await play.aap.raw.until(b"One moment. ")
    assert await play.aap.raw.quiet(0.9)
    assert "turn_stop" in (await play.aap.raw.until(b"end_turn") or b"").decode()
    assert b"Here it is." in play.aap.raw.everything


@shows("sse-bom")
async def _(play: Play) -> None:
    reply = await play.good()
    assert reply.body.startswith(b"\xef\xbb\xbfevent: turn_start\n")
    assert names(reply) == ["turn_start", "text_delta", "turn_stop"]


@shows("sse-id-and-retry")
async def _(play: Play) -> None:
    reply = await play.good()
    assert reply.body.count(b"id: 7\nretry: 10\nx-trace: abc\nevent: ") == 4
    assert reply.told == ["One. ", "Two."]


@shows("sse-drip")
async def _(play: Play) -> None:
    reply = await play.good()
    assert reply.told == ["Grüße, ", "done."]
    assert len(reply.chunks) >= 60
    assert max(map(len, reply.chunks)) < 10


@shows("wrong-content-type")
async def _(play: Play) -> None:
    replies = [await play.good() for _ in range(3)]
    assert [reply.headers["content-type"] for reply in replies] == [
        "text/plain", "application/json", "text/event-stream",
    ]  # fmt: skip
    assert [reply.told for reply in replies] == [["Hello."]] * 3


# --- tools


@shows("reused-tool-call-id")
async def _(play: Play) -> None:
    made = [calls(await play.good()) for _ in range(2)]
    assert [[call["toolCallId"] for call in turn] for turn in made] == [["call_1"], ["call_1"]]
    assert [turn[0]["input"] for turn in made] == [{"turn": 1}, {"turn": 2}]


@shows("inline-result-then-client-tool")
async def _(play: Play) -> None:
    tool = {"name": "ask_user", "description": "Asks", "parameters": {"type": "object"}}
    reply = await play.post({"role": "user", "content": "go"}, tools=[tool])
    assert names(reply)[1:] == ["text_delta", "tool_call", "tool_result", "text_delta", "tool_call", "turn_stop"]
    assert [call["name"] for call in calls(reply)] == ["clock", "ask_user"]
    assert stops(reply) == ["tool_use"]
    reply = await play.post({"role": "tool", "toolCallId": "call_client", "content": "noon"})
    assert (reply.told, stops(reply)) == (["You say: noon"], ["end_turn"])


@shows("tool-input-as-string")
async def _(play: Play) -> None:
    [call] = calls(await play.good())
    assert call["input"] == '{"zone":"Asia/Tokyo"}'


@shows("pending-tool-in-history")
async def _(play: Play) -> None:
    play.session = "sess_open"
    last = (await play.history())[-1]
    assert last["role"] == "assistant"
    assert last["content"][-1]["toolCallId"] == "call_open"
    reply = await play.post({"role": "tool", "toolCallId": "call_open", "content": "21°C"})
    assert reply.told == ["The thermometer says: 21°C"]
    assert [message["role"] for message in await play.history()][-2:] == ["tool", "assistant"]


# --- sessions, lists, errors


@shows("session-gone-404")
async def _(play: Play) -> None:
    path = f"/sessions/{play.session}"
    assert (await play.get(path)).status == 200
    assert (await play.good()).status == 200
    body = {"messages": [{"role": "user", "content": "again"}]}
    asked = [("POST", "/turns", body), ("GET", "", None), ("GET", "/history?type=full", None), ("DELETE", "", None)]
    assert [(await play.aap.call(method, path + rest, body)).status for method, rest, body in asked] == [404] * 4
    play.session = await play.aap.new()
    assert (await play.good()).status == 200


@shows("turn-fails-once")
async def _(play: Play) -> None:
    user = {"role": "user", "content": "go"}
    replies = [await play.post(user, agent={"options": {"model": "smart"}}) for _ in range(4)]
    assert [reply.status for reply in replies] == [404, 429, 500, 200]
    assert replies[1].headers["retry-after"] == "1"
    assert replies[3].told == ["With the smart model."]


@shows("html-error")
async def _(play: Play) -> None:
    page, nothing, good = [await play.good() for _ in range(3)]
    assert (page.status, page.headers["content-type"]) == (502, "text/html")
    assert page.body.startswith(b"<html>")
    assert (nothing.status, nothing.body) == (503, b"")
    assert good.told == ["Here I am."]


@shows("session-id-with-slashes")
async def _(play: Play) -> None:
    rows = {row["sessionId"] for row in (await play.get("/sessions")).json["sessions"]}
    odd = "team/42?draft=1#top 100% ü"
    assert {odd, "../meta"} <= rows
    play.session = odd
    assert [message["content"] for message in await play.history()] == ["Hello", "Hi."]
    reply = await play.post({"role": "user", "content": "go"})
    assert reply.told == [f"This is {odd}."]
    for id in (odd, "../meta"):
        assert (await play.get(f"/sessions/{quote(id, safe='')}")).json["sessionId"] == id


@shows("secret-redacted")
async def _(play: Play) -> None:
    user = {"role": "user", "content": "go"}
    assert (await play.good()).told == ["I have no key."]
    assert (await play.post(user, agent={"options": {"api_key": "sk-12345"}})).told == ["I have a key."]
    shown = await play.get(f"/sessions/{play.session}")
    listed = await play.get("/sessions")
    assert b'"api_key":"***"' in shown.body
    assert b"sk-12345" not in shown.body + listed.body
    assert (await play.good()).told == ["I have a key."]


async def pages(play: Play, count: int) -> list[Reply]:
    """Follows `next` for so many pages, or to an error."""
    found = [await play.get("/sessions")]
    while len(found) < count and found[-1].status == 200 and "next" in found[-1].json:
        found.append(await play.get(f"/sessions?after={quote(found[-1].json['next'], safe='')}"))
    for page in found:
        play.judge.listing(page)
    return found


@shows("next-repeats")
async def _(play: Play) -> None:
    found = await pages(play, 6)
    assert len(found) == 6
    assert len({page.json["next"] for page in found}) == 1
    rows = [[row["sessionId"] for row in page.json["sessions"]] for page in found]
    assert rows[1:] == [rows[1]] * 5


@shows("next-invalid")
async def _(play: Play) -> None:
    first = await pages(play, 6)
    assert [page.status for page in first] == [200, 400]
    assert first[1].json["error"]["code"] == "invalid_cursor"
    play.judge = AapJudge()  # a client begins again, and is judged again
    again = await pages(play, 6)
    assert [len(page.json["sessions"]) for page in again] == [5, 5, 3]


@shows("sse-cut")
async def _(play: Play) -> None:
    for complete in (True, False):
        reply = await play.good()
        assert (reply.told, reply.complete) == (["This is the first half, "], complete)


@shows("sse-line-endings")
async def _(play: Play) -> None:
    told = [(await play.good()).told for _ in range(4)]
    assert told == [["One. ", "Two. ", "Three."]] * 3 + [["No space, and two lines. ", "Good."]]


@shows("rate-limited")
async def _(play: Play) -> None:
    assert [(await play.good()).status for _ in range(4)] == [429, 429, 429, 200]


@shows("unauthorised")
async def _(play: Play) -> None:
    assert [(await play.good()).status for _ in range(4)] == [200, 401, 401, 200]


@pytest.mark.parametrize("name", CHECKS)
async def test_a_scenario_about_http_does_what_it_promises(autojump_clock: Any, name: str) -> None:
    """The marks are judged too: in an allowed scenario nothing is wrong, in a violation something is."""
    path = FOLDER / f"http/{name}.yaml"
    async with serving(path) as served:
        aap = await served.aap()
        play = Play(served, aap, await aap.new())
        await CHECKS[name](play)
    assert bool(play.judge.problems) == (load(path).legality == "violation"), play.judge.problems
