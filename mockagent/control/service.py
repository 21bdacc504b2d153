"""Control over HTTP: what any test suite, in any language, can do with the mock below `/_mock`.

JSON in, JSON out, no state of its own. Who may come in by `Host` and `Origin` is the gate's decision, as for all else;
a token may be asked for on top, and has to be where others than this machine's can connect.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from hmac import compare_digest
from typing import TYPE_CHECKING, Any

import msgspec
import trio

from mockagent.aap import cors
from mockagent.control import spec
from mockagent.control.desk import Desk
from mockagent.net.channel import Bytes
from mockagent.net.http_message import Request
from mockagent.net.http_reply import Responder
from mockagent.net.sse import encode_event
from mockagent.scenario.problems import ScenarioError
from mockagent.watch.entries import Entry, encode_line
from mockagent.watch.memory import awaited, is_kind
from mockagent.wire.gate import Gate

if TYPE_CHECKING:
    from mockagent.host import Beside, Host
    from mockagent.scenario.model import Scenario
    from mockagent.site import Handler

PREFIX = "/_mock"

LONGEST = 600.0
"""Seconds that a request may wait."""

BEHIND = 100_000
"""Lines that a follower may be behind before it is let go."""


_USAGE_ERROR = 2


class Wrong(Exception):
    """A request that cannot be carried out."""

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = dict(headers or {})


class Answer(msgspec.Struct):
    """What is answered, as JSON."""

    value: Any
    status: int = 200


class Control:
    """Answers below `/_mock`.

    Args:
        desk: carries out.
        gate: knows the origins whose pages may read the answers.
        token: has to come as bearer token; None: nobody is asked for one.
        public: others than this machine's can connect: without a token nothing is answered.
    """

    def __init__(self, desk: Desk, *, gate: Gate | None = None, token: str | None = None, public: bool = False) -> None:
        self._desk = desk
        self._gate = gate or Gate("127.0.0.1")
        self._token = token
        self._public = public

    async def handle(self, request: Request, responder: Responder) -> None:
        """Answers one request.

        Raises:
            Broken: the client has gone.
        """
        common = cors.common(request.headers, self._gate.allows)
        try:
            self._admit(request)
            endpoint = self._endpoint(request, responder, common)
            answer = None if endpoint is None else await endpoint(self, request)
        except Wrong as wrong:
            await _send(responder, wrong.status, _error(wrong.code, str(wrong)), common | wrong.headers)
        else:
            if answer is not None:
                await _send(responder, answer.status, answer.value, common)
            elif request.method == "OPTIONS":
                methods = _methods(request)
                told = cors.preflight(request.headers, methods) or {"Allow": ", ".join(methods)}
                await responder.send(204, [*(common | told).items()])
            else:
                await self._follow(request, responder, common)

    def _admit(self, request: Request) -> None:
        if request.method == "OPTIONS":
            return
        if self._token is None:
            if self._public:
                raise Wrong(403, "token_needed", "control is open on this machine only; start with --control-token")
            return
        scheme, _, token = (request.headers.get("authorization") or "").partition(" ")
        if scheme.lower() != "bearer" or not compare_digest(token.strip().encode(), self._token.encode()):
            raise Wrong(401, "unauthorized", "Authorization: Bearer TOKEN is needed", {"WWW-Authenticate": "Bearer"})

    def _endpoint(self, request: Request, responder: Responder, common: Mapping[str, str]) -> Endpoint | None:
        """What answers; None: it is the request for a stream, or for the methods."""
        methods = _methods(request)
        if not methods:
            there = ", ".join(sorted({f"{PREFIX}/{path}" for path, _ in ENDPOINTS}))
            raise Wrong(404, "not_found", f"there is nothing at {request.path}; there are: {there}")
        if request.method == "OPTIONS":
            return None
        method = "GET" if request.method == "HEAD" else request.method
        if method not in methods:
            raise Wrong(
                405, "method_not_allowed", f"possible here: {', '.join(methods)}", {"Allow": ", ".join(methods)}
            )
        if _path(request)[0] == "journal" and request.param("follow") is not None:
            return None
        return ENDPOINTS[_path(request)[0], method]

    # --- endpoints

    async def health(self, request: Request) -> Answer:
        return Answer(await self._desk.health())

    async def sessions(self, request: Request) -> Answer:
        return Answer({"sessions": await self._desk.sessions()})

    async def report(self, request: Request) -> Answer:
        return Answer(await self._desk.report())

    async def journal(self, request: Request) -> Answer:
        await self._desk.sync()
        found = [
            entry for entry in self._desk.memory.since(int(_number(request, "since", 0))) if _wanted(request, entry)
        ]
        limit = int(_number(request, "limit", len(found)))
        return Answer({"entries": found[-limit:] if limit else [], "last": self._desk.memory.last})

    async def wait(self, request: Request) -> Answer:
        method = request.param("for")
        if not method:
            raise Wrong(400, "bad_request", "say what to wait for: ?for=session/cancel&timeout=2")
        timeout = min(_number(request, "timeout", 5.0), LONGEST)
        try:
            return Answer(await self._desk.wait_for(method, timeout, int(_number(request, "since", 0))))
        except TimeoutError as missing:
            raise Wrong(408, "timeout", str(missing)) from None

    async def push(self, request: Request) -> Answer:
        body = _body(request)
        session = body.pop("session", None)
        if not isinstance(session, str):
            raise Wrong(400, "bad_request", "push: session: the id of a session has to be given")
        try:
            await self._desk.push(session, spec.update_of(body))
        except LookupError as error:
            raise Wrong(404, "session_not_found", str(error)) from None
        except ValueError as error:
            raise Wrong(400, "bad_request", str(error)) from None
        return Answer({"pushed": session})

    async def faults(self, request: Request) -> Answer:
        return Answer({"faults": self._desk.armed()})

    async def arm(self, request: Request) -> Answer:
        from mockagent.scenario.model import Place

        try:
            fault = spec.fault_of(_body(request), Place(file=f"POST {PREFIX}/faults"))
        except ValueError as error:
            raise Wrong(400, "bad_request", str(error)) from None
        return Answer({"id": await self._desk.arm(fault)}, 201)

    async def disarm(self, request: Request) -> Answer:
        id = _path(request)[1]
        if not await self._desk.disarm(id) and id is not None:
            raise Wrong(404, "not_found", f"no fault {id!r} is armed")
        return Answer({"faults": self._desk.armed()})

    async def advance(self, request: Request) -> Answer:
        seconds = _body(request).get("seconds")
        if not isinstance(seconds, int | float) or isinstance(seconds, bool):
            raise Wrong(400, "bad_request", "advance: seconds: a number has to be given")
        try:
            await self._desk.advance(seconds)
        except ValueError as error:
            raise Wrong(400, "bad_request", str(error)) from None
        return await self.health(request)

    async def reset(self, request: Request) -> Answer:
        await self._reset()
        return await self.health(request)

    async def _reset(self, scenario: Scenario | None = None, agent: str | None = None) -> None:
        try:
            await self._desk.reset(scenario, agent)
        except LookupError as error:
            raise Wrong(404, "not_found", str(error)) from None
        except (ScenarioError, ValueError) as error:
            raise Wrong(409, "conflict", str(error)) from None

    async def swap(self, request: Request) -> Answer:
        """The body is `{scenario: NAME, agent: NAME}`, or a whole scenario as YAML or JSON."""
        agent = request.param("agent")
        try:
            try:
                body = _body(request)
            except Wrong:
                body = {}
            if isinstance(body.get("scenario"), str):
                from mockagent.scenario.library import open_bundled

                agent = body.get("agent", agent)
                made = open_bundled(body["scenario"])
            else:
                made = spec.scenario_of_text(request.body, includes=False)
        except ScenarioError as error:
            raise Wrong(400, "bad_scenario", str(error)) from None
        await self._reset(made, agent)
        return await self.health(request)

    # --- the live journal

    async def _follow(self, request: Request, responder: Responder, common: Mapping[str, str]) -> None:
        """Sends the lines of the journal as events, from `since` (or `Last-Event-ID`) on, until the client goes."""
        since = int(_number(request, "since", float(_whole(request.headers.get("last-event-id")))))
        memory = self._desk.memory
        lines = memory.since(since)
        more = trio.Event()

        def take(entry: Entry) -> None:
            lines.append(entry)
            more.set()

        end = memory.subscribe(take)
        head = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", **common}
        try:
            body = await responder.start(200, [*head.items()])
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_until, responder.disconnected, nursery.cancel_scope)
                while len(lines) < BEHIND:
                    taken = [entry for entry in lines if _wanted(request, entry)]
                    lines.clear()
                    if taken:
                        await body.write([Bytes(b"".join(_event(entry) for entry in taken))])
                        continue
                    more = trio.Event()
                    await more.wait()
                nursery.cancel_scope.cancel()
        finally:
            end()


Endpoint = Callable[[Control, Request], Awaitable[Answer]]

ENDPOINTS: dict[tuple[str, str], Endpoint] = {
    ("health", "GET"): Control.health,
    ("sessions", "GET"): Control.sessions,
    ("journal", "GET"): Control.journal,
    ("wait", "GET"): Control.wait,
    ("report", "GET"): Control.report,
    ("push", "POST"): Control.push,
    ("faults", "GET"): Control.faults,
    ("faults", "POST"): Control.arm,
    ("faults", "DELETE"): Control.disarm,
    ("faults/ID", "DELETE"): Control.disarm,
    ("advance", "POST"): Control.advance,
    ("reset", "POST"): Control.reset,
    ("scenario", "POST"): Control.swap,
}


def mount(token: str | None = None, *, host: str = "127.0.0.1", origins: tuple[str, ...] = ()) -> Callable[[Host], Any]:
    """Makes what `Host.serve` mounts.

    Args:
        token: see `Control`.
        host: the address that is listened on.
        origins: further origins whose pages may connect.
    """

    def made(running: Host) -> tuple[str, Handler]:
        control = Control(Desk(running), gate=Gate(host, origins), token=token, public=not is_loopback(host))
        return PREFIX, control.handle

    return made


def is_loopback(host: str) -> bool:
    """Whether only this machine's can connect to an address."""
    return host in ("localhost", "::1") or host.startswith("127.")


def beside_stdio(address: str, token: str | None = None) -> Beside:
    """Makes what serves control, alone on a port, beside an agent over stdio.

    Args:
        address: `HOST:PORT`, an IPv6 address in brackets; port 0 picks a free one. Stderr says which, or why not: then
            the process ends.
        token: see `Control`.

    Raises:
        ValueError: this is no address.
    """
    host, _, number = address.rpartition(":")
    name = host.removeprefix("[").removesuffix("]")
    if not name or not number.isdecimal() or int(number) > 65535:
        raise ValueError("this has to be HOST:PORT, such as 127.0.0.1:0")

    async def beside(running: Host, *, task_status: trio.TaskStatus[None]) -> None:
        from mockagent.net.http import open_listeners

        try:
            listeners = await open_listeners(name, int(number))
        except OSError as error:
            running.backstage.complain(
                f"cannot listen on {address}: {error.strerror or error}; port 0 picks a free one"
            )
            running.exit(_USAGE_ERROR)
            return
        port = listeners[0].socket.getsockname()[1]
        running.backstage.complain(f"control on http://{host}:{port}{PREFIX}")
        task_status.started()
        await _serve_alone(Desk(running), listeners, name, token)

    return beside


async def _serve_alone(desk: Desk, listeners: Sequence[trio.SocketListener], host: str, token: str | None) -> None:
    from mockagent.net.http import serve_http

    gate = Gate(host)
    control = Control(desk, gate=gate, token=token, public=not is_loopback(host))

    async def answer(request: Request, responder: Responder) -> None:
        closed = gate.closed(request.headers)
        if closed is not None:
            await _send(responder, closed.status, _error(closed.code, closed.message), {})
        elif request.path == PREFIX or request.path.startswith(PREFIX + "/"):
            await control.handle(request, responder)
        else:
            await _send(responder, 404, _error("not_found", f"try {PREFIX}/health"), {})

    await serve_http(listeners, answer, log=desk.host.backstage.complain)


# --- requests


def _path(request: Request) -> tuple[str, str | None]:
    """The endpoint, and the id in it."""
    parts = [part for part in request.segments[1:] if part]
    if len(parts) == 2 and parts[0] == "faults":
        return "faults/ID", parts[1]
    return "/".join(parts) or "health", None


def _methods(request: Request) -> list[str]:
    path = _path(request)[0]
    return [method for own, method in ENDPOINTS if own == path]


def _body(request: Request) -> dict[str, Any]:
    """The body; whatever its type is said to be, so that `curl -d` needs no header."""
    try:
        value = msgspec.json.decode(request.body) if request.body.strip() else {}
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise Wrong(400, "bad_request", f"the body is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise Wrong(400, "bad_request", "the body has to be a JSON object")
    return value


def _number(request: Request, name: str, default: float) -> float:
    text = request.param(name)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise Wrong(400, "bad_request", f"{name}={text}: this has to be a number from 0 on")
    return value


def _whole(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() else 0


def _wanted(request: Request, entry: Entry) -> bool:
    """Whether the query asks for a line: by `direction`, `kind` (also the name of an event), `session`."""
    direction, kind, session = request.param("direction"), request.param("kind"), request.param("session")
    if direction is not None and entry.direction != direction:
        return False
    if session is not None and entry.session != session:
        return False
    return kind is None or awaited(entry, kind) or is_kind(entry, kind)


async def _until(event: trio.Event, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


# --- answers


def line_of(entry: Entry) -> bytes:
    """The JSON of a line of the journal. Never fails."""
    try:
        return msgspec.json.encode(entry)
    except (UnicodeEncodeError, RecursionError, TypeError, OverflowError):
        return encode_line(msgspec.to_builtins(entry))


def _error(code: str, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message}}


def _event(entry: Entry) -> bytes:
    return encode_event(None, line_of(entry), id=str(entry.seq))


async def _send(responder: Responder, status: int, value: Any, headers: Mapping[str, str]) -> None:
    head = {"Content-Type": "application/json", "Cache-Control": "no-store", **headers}
    await responder.send(status, [*head.items()], _json(value))


def _json(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, RecursionError, TypeError, OverflowError):
        return encode_line(msgspec.to_builtins(value))
