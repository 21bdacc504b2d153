"""The bundled scenarios: finding, listing, and the packed form."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mockagent.scenario import library
from mockagent.scenario.load import load
from mockagent.scenario.packed import pack, unpack
from mockagent.scenario.problems import ScenarioError

GOOD = Path(__file__).parent / "good"


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A library of its own, with two scenarios and a base."""
    root = tmp_path / "_scenarios"
    (root / "lists").mkdir(parents=True)
    (root / "_base.yaml").write_text("seed: 3\n")
    (root / "demo.yaml").write_text("include: _base.yaml\nsummary: The demo\ntags: [a]\n")
    (root / "lists" / "late-title.yaml").write_text("legality: unspecified\nturns: [{steps: [{say: x}]}]\n")
    monkeypatch.setattr(library, "folder", lambda: str(root))
    monkeypatch.setattr(library, "_cache", {})
    return root


def test_names_are_paths_without_ending_and_the_top_comes_first(shelf: Path) -> None:
    assert library.names() == ["demo", "lists/late-title"]


def test_rows_of_the_table(shelf: Path) -> None:
    assert library.summaries() == [
        library.Summary("demo", "The demo", "allowed", ("a",)),
        library.Summary("lists/late-title", "", "unspecified", ()),
    ]


def test_an_argument_is_a_name_or_a_path(shelf: Path) -> None:
    assert library.open_scenario("demo").seed == 3
    assert library.open_scenario("lists/late-title").name == "late-title"
    assert library.open_scenario(str(shelf / "demo.yaml")).seed == 3


@pytest.mark.parametrize(
    ("argument", "hint"),
    [
        ("dmeo", "did you mean `demo`"),
        ("late-title", "did you mean `lists/late-title`"),
        ("_base", "no bundled scenario"),
        ("../demo", "cannot be read"),
        ("lists", "no bundled scenario"),
        ("nothing.yaml", "cannot be read"),
    ],
)
def test_an_unknown_scenario_is_an_error_with_a_hint(shelf: Path, argument: str, hint: str) -> None:
    with pytest.raises(ScenarioError, match=hint):
        library.open_scenario(argument)


@pytest.mark.parametrize("file", sorted(GOOD.glob("*.yaml")), ids=lambda file: file.stem)
def test_packing_keeps_everything_but_the_folder(file: Path, tmp_path: Path) -> None:
    scenario = load(file)
    assert unpack(pack(scenario, str(GOOD)), str(GOOD)) == scenario
    moved = unpack(pack(scenario, str(GOOD)), "/elsewhere")
    assert moved.file == f"/elsewhere/{file.name}"


def test_bytes_that_are_no_scenario_are_refused() -> None:
    for data in (b"", b"\x93\x00\x01\x02", b"\xc0", b"\x92\x05\x80"):
        with pytest.raises(ValueError, match="not a packed"):
            unpack(data, "/")


def test_the_packed_form_is_taken_while_its_files_are_the_same(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert library.compile_library(shelf, shelf) == 2
    expected = library._load(str(shelf / "demo.yaml"))

    def never(path: str) -> None:
        raise AssertionError(f"{path} was parsed")

    with monkeypatch.context() as patch:
        patch.setattr(library, "_load", never)
        assert library.open_scenario("demo") == expected
        assert [row.name for row in library.summaries()] == ["demo", "lists/late-title"]


def test_a_changed_file_or_base_makes_the_packed_form_stale(shelf: Path) -> None:
    library.compile_library(shelf, shelf)
    (shelf / "_base.yaml").write_text("seed: 4\n")
    assert library.open_scenario("demo").seed == 4


def test_a_packed_form_of_another_version_is_ignored(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(library, "__version__", "other")
        library.compile_library(shelf, shelf / library.PACKED)
    assert library._packed(str(shelf)) is None
    assert library.open_scenario("demo").seed == 3


def test_a_broken_packed_file_is_ignored(shelf: Path) -> None:
    (shelf / library.PACKED).write_bytes(b"\xff\x00")
    assert library.open_scenario("demo").seed == 3


def test_a_packed_scenario_needs_neither_yaml_nor_the_tables(tmp_path: Path) -> None:
    package = tmp_path / "mockagent"
    shutil.copytree(Path(library.__file__).parents[1], package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(library.folder(), package / "_scenarios")
    library.compile_library(package / "_scenarios", package / "_scenarios")
    code = (
        "import sys; from mockagent.scenario.library import open_scenario; s = open_scenario('demo'); "
        "assert s.turns and s.file.startswith(sys.argv[1]), s.file; print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    needless = {"yaml", "mockagent.scenario.load", "mockagent.scenario.types", "mockagent.scenario.verbs", "difflib"}
    assert not needless & set(done.stdout.split())
