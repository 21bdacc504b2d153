"""Chromium without a window, for tests: opens a page of this folder, and gives back what the page tells.

The page comes from a server of its own, on another port than the mock: to the browser it is of another origin.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.official import INTEROP

REQUIRE_BROWSER = "MOCKAGENT_REQUIRE_BROWSER"
"""With this variable set to 1 a missing browser fails the test in place of skipping it."""

PATIENCE = 60
"""Seconds after which a page counts as stuck."""

_FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]


def browser() -> str:
    """Chromium, in whatever name it goes by."""
    for name in ("chromium", "chromium-browser", "google-chrome", "chrome"):
        if (found := shutil.which(name)) is not None:
            return found
    reason = "there is no chromium; `apt-get install chromium` brings it"
    if os.environ.get(REQUIRE_BROWSER) == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def _page_server(file: Path, told: queue.SimpleQueue[Any]) -> Iterator[int]:
    """Serves a page wherever it is asked for, and takes what it posts."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = file.read_bytes()
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            told.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def visit(page: str, profile: Path, **query: str) -> Any:
    """Opens a page; returns what it posts to its own server.

    Args:
        page: file in this folder.
        profile: a folder for the browser.
        query: parameters of the page's address.
    """
    program = browser()
    told: queue.SimpleQueue[Any] = queue.SimpleQueue()
    with _page_server(INTEROP / page, told) as port:
        url = f"http://localhost:{port}/?{urlencode(query)}"
        running = subprocess.Popen(
            [program, *_FLAGS, f"--user-data-dir={profile}", "--remote-debugging-port=0", url],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return told.get(timeout=PATIENCE)
        finally:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
