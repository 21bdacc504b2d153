"""Good files load, bad files get exactly the stated problems, and the JSON Schema agrees with both."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest

from mockagent.scenario import library
from mockagent.scenario.load import check, load
from mockagent.scenario.nodes import plain, read
from mockagent.scenario.schema import json_schema

HERE = Path(__file__).parent
GOOD = sorted((HERE / "good").glob("*.yaml"))
BAD = sorted((HERE / "bad").glob("*.yaml"))

#: mistakes that no JSON Schema can see: a circle of files, words that depend on `legality`, faults that can never
#: fire, a file as a whole
BEYOND_SCHEMA = {"circle.yaml", "faults.yaml", "known.yaml", "legality.yaml"}


@pytest.fixture(scope="module")
def judge() -> jsonschema.Draft202012Validator:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("file", GOOD, ids=lambda file: file.stem)
def test_a_good_file_loads(file: Path) -> None:
    assert [str(problem) for problem in check(file)] == []
    assert load(file).file == str(file)


@pytest.mark.parametrize("file", BAD, ids=lambda file: file.stem)
def test_a_bad_file_gets_every_problem_with_its_place(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    found = [str(problem) for problem in check(file.name)]
    assert found == file.with_suffix(".out").read_text(encoding="utf-8").splitlines()
    assert found


@pytest.mark.parametrize("file", GOOD, ids=lambda file: file.stem)
def test_the_schema_takes_a_good_file(file: Path, judge: jsonschema.Draft202012Validator) -> None:
    root, _ = read(file.read_bytes(), file.name)
    assert root is not None
    judge.validate(plain(root))


@pytest.mark.parametrize("file", BAD, ids=lambda file: file.stem)
def test_the_schema_refuses_a_bad_file(file: Path, judge: jsonschema.Draft202012Validator) -> None:
    root, problems = read(file.read_bytes(), file.name)
    refused = bool(problems) or root is None or not judge.is_valid(plain(root))
    assert refused == (file.name not in BEYOND_SCHEMA)


@pytest.mark.parametrize("name", library.names())
def test_a_bundled_scenario_says_all_about_itself(name: str, judge: jsonschema.Draft202012Validator) -> None:
    file = Path(library.path_of(name))
    assert [str(problem) for problem in check(file)] == []
    root, _ = read(file.read_bytes(), file.name)
    assert root is not None
    data = plain(root)
    judge.validate(data)
    missing = {"name", "summary", "legality", "right_client", "tags"} - set(data)
    assert not missing
    assert data["name"] == file.stem
