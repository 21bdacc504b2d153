"""A small ACP client over two streams of bytes: requests, their answers, and what the agent sends on its own.

A test partner for agents of any manners: whatever comes in, it goes on. It knows JSON-RPC and no method; what
notifications mean and how the agent's requests are answered is somebody else's business.

Source: JSON-RPC 2.0; ACP v1, "Transports", stdio.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import trio

from mockagent.jsonrpc.messages import (
    Malformed,
    Notification,
    Request,
    Response,
    Single,
    encode,
    notification_message,
    parse,
    request_message,
)
from mockagent.net.lines import LineReader, Oversized

METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603


class Gone(Exception):
    """The agent has ended the connection."""


class AgentError(Exception):
    """A request was answered with an error.

    Args:
        error: code, message and data, as they came.
    """

    def __init__(self, error: dict[str, Any]) -> None:
        self.error = error
        super().__init__(str(error.get("message")))


class Waiting:
    """A request that was sent, and its answer once it is there.

    Args:
        then: takes the result at once, before the next message is looked at.
    """

    def __init__(self, then: Callable[[Any], None] | None = None) -> None:
        self.settled = trio.Event()
        self._then = then
        self._response: Response | None = None

    def settle(self, response: Response | None) -> None:
        """Takes the answer; None says that none will come."""
        self._response = response
        self.settled.set()
        if response is not None and response.error is None and self._then is not None:
            self._then(response.result)

    def value(self) -> Any:
        """The result.

        Raises:
            AgentError: the answer is an error.
            Gone: there is none.
        """
        if self._response is None:
            raise Gone
        if self._response.error is not None:
            raise AgentError(self._response.error)
        return self._response.result


class Client:
    """The client's end of one connection.

    Args:
        receive: what the agent writes.
        send: what the agent reads.
        noted: is told of notifications.
        asked: answers the agent's requests, or raises AgentError.
        puzzled: is told, in words, of what is no message or answers nothing.

    Attributes:
        heard: when something last arrived, or was last sent that may bring something.
        ended: the agent has ended the connection.
    """

    def __init__(
        self,
        receive: trio.abc.ReceiveStream,
        send: trio.abc.SendStream,
        *,
        noted: Callable[[Notification], None],
        asked: Callable[[Request], Awaitable[Any]],
        puzzled: Callable[[str, bytes], None],
    ) -> None:
        self.heard = trio.current_time()
        self.ended = trio.Event()
        self._receive = receive
        self._send = send
        self._noted = noted
        self._asked = asked
        self._puzzled = puzzled
        self._lock = trio.StrictFIFOLock()
        self._waiting: dict[Any, Waiting] = {}
        self._last_id = 0

    async def run(self) -> None:
        """Reads until the agent ends the connection."""
        async with trio.open_nursery() as nursery:
            async for line in LineReader(self._receive):
                self.heard = trio.current_time()
                if isinstance(line, Oversized):
                    self._puzzled(f"a line of {line.length} bytes", b"")
                elif line.strip():
                    found = parse(line)
                    for message in found if isinstance(found, list) else [found]:
                        self._take(message, nursery)
            self.ended.set()
            for waiting in self._waiting.values():
                waiting.settle(None)
            self._waiting.clear()
            nursery.cancel_scope.cancel()

    def _take(self, message: Single, nursery: trio.Nursery) -> None:
        if isinstance(message, Notification):
            self._noted(message)
        elif isinstance(message, Request):
            nursery.start_soon(self._answer, message)
        elif isinstance(message, Malformed):
            self._puzzled(message.message, message.raw)
        elif message.id in self._waiting:
            self._waiting.pop(message.id).settle(message)
        else:
            self._puzzled("an answer to nothing that was asked", message.raw)

    async def _answer(self, request: Request) -> None:
        try:
            message = request.result(await self._asked(request))
        except AgentError as refused:
            message = {"jsonrpc": "2.0", "id": request.id, "error": refused.error}
        await self._write(message)

    async def ask(self, method: str, params: Any, then: Callable[[Any], None] | None = None) -> Waiting:
        """Sends a request; `then` takes its result."""
        self._last_id += 1
        waiting = Waiting(then)
        if self.ended.is_set():
            waiting.settle(None)
            return waiting
        self._waiting[self._last_id] = waiting
        self.heard = trio.current_time()
        await self._write(request_message(self._last_id, method, params))
        return waiting

    async def notify(self, method: str, params: Any) -> None:
        """Sends a notification."""
        self.heard = trio.current_time()
        await self._write(notification_message(method, params))

    async def _write(self, message: dict[str, Any]) -> None:
        async with self._lock:
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):  # the reading side tells
                await self._send.send_all(encode(message) + b"\n")
