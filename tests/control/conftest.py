"""A mock whose controls are asked over HTTP, and a client of its agent."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from mockagent.testing import MockAgent
from tests.plain import StdioClient

SCENARIO = """\
name: controlled
clock: {now: "2026-01-15T09:00:00Z"}
sessions:
  auto_title: null
  stored: [{id: sess_old, title: Old, cwd: /home/dev/project}]
turns:
  - when: {prompt: wait}
    steps: [{say: A moment}, {after: 1h, say: There}]
  - steps: [{say: Hello}]
"""


@pytest.fixture
def mock() -> Iterator[MockAgent]:
    with MockAgent(SCENARIO) as running:
        yield running


@pytest.fixture
def http(mock: MockAgent) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=mock.control_url, timeout=20, verify=False) as client:
        yield client


@pytest.fixture
def client(mock: MockAgent) -> Iterator[StdioClient]:
    with StdioClient(mock.stdio_command) as running:
        yield running
