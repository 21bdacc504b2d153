"""The pytest plugin: the fixture `mockagent`, the marker of that name, and the option that keeps journals.

Loaded in every pytest run of everybody who has installed us, so it imports nothing before the fixture is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from mockagent.testing.agent import MockAgent

SHOWN = 30
"""Lines of the journal that are shown for a failed test."""

_MOCK: pytest.StashKey[MockAgent] = pytest.StashKey()
_FAILED: pytest.StashKey[bool] = pytest.StashKey()

_MARKER = (
    "mockagent(scenario, *, verify=True, **options): what the fixture `mockagent` plays, and options of MockAgent; "
    "verify=False leaves the verdict on the client to the test."
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--mockagent-journal`."""
    group = parser.getgroup("mockagent", "mock agents for ACP and AAP clients")
    group.addoption(
        "--mockagent-journal",
        metavar="DIR",
        help="Keep the journals of failed tests in this folder, one JSON line per message.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Tells pytest of the marker."""
    config.addinivalue_line("markers", _MARKER)


@pytest.fixture(name="mockagent")
def _mockagent(request: pytest.FixtureRequest) -> Iterator[MockAgent]:
    """A running mock agent for one test, `MockAgent`. It plays what the marker `mockagent` says, or `demo`.

    Behind the test the verdict on the client is asked for; if it is bad, that is an error of its own.
    """
    from mockagent.testing.agent import MockAgent

    scenario, verify, options = _marked(request.node)
    with MockAgent(scenario, **options) as mock:
        request.node.stash[_MOCK] = mock
        yield mock
        verdict = _verdict(mock) if verify else None
        if verdict is not None or request.node.stash.get(_FAILED, False):
            _keep(request.node, mock)
        if verdict is not None:
            pytest.fail(verdict, pytrace=False)  # where in the mock it was found out helps nobody


def _verdict(mock: MockAgent) -> str | None:
    """What the client did wrong, or None."""
    try:
        mock.verify()
    except AssertionError as failed:
        return str(failed)
    return None


def _marked(node: pytest.Item) -> tuple[Any, bool, dict[str, Any]]:
    """What the closest marker says: the scenario, whether to verify, and options."""
    marker = node.get_closest_marker("mockagent")
    if marker is None:
        return "demo", True, {}
    if len(marker.args) > 1:
        pytest.fail("the marker mockagent takes one scenario; further agents are `scenarios=[...]`", pytrace=False)
    options = dict(marker.kwargs)
    scenario = marker.args[0] if marker.args else options.pop("scenario", "demo")
    return scenario, bool(options.pop("verify", True)), options


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Notes whether the test failed, and shows what went over the wire if it did."""
    report: pytest.TestReport = yield
    mock = item.stash.get(_MOCK, None)
    if mock is not None and report.failed:
        item.stash[_FAILED] = True
        if report.when == "call":
            report.sections.append(("mockagent: the end of the journal", _tail(mock)))
    if report.when == "teardown" and mock is not None:
        del item.stash[_MOCK]
    return report


def _tail(mock: MockAgent) -> str:
    try:
        entries = mock.journal.entries
    except RuntimeError as error:
        return str(error)
    from mockagent.testing.told import told

    lines = [told(entry) for entry in entries[-SHOWN:]]
    return "\n".join(lines) or "the client has not said anything"


def _keep(item: pytest.Item, mock: MockAgent) -> None:
    """Writes the journal into the folder of `--mockagent-journal`."""
    folder = item.config.getoption("--mockagent-journal")
    if folder is None:
        return
    from mockagent.control.service import line_of

    path = _place(item, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(line_of(entry) + b"\n" for entry in mock.journal.entries))
    item.add_report_section("teardown", "mockagent", f"journal: {path}")


def _place(item: pytest.Item, folder: str) -> Path:
    """A file for each test, named after it; no two tests of one run share one."""
    import re
    from hashlib import sha256

    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", item.nodeid).strip("-")
    if len(name) > 120 or name != item.nodeid.replace("/", "-").replace("::", "-"):
        name = f"{name[:120]}-{sha256(item.nodeid.encode()).hexdigest()[:8]}"
    return item.config.invocation_params.dir / folder / f"{name}.jsonl"
