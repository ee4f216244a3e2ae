"""Which tests `make test` leaves to `make test-all`, and `make test-quick` to `make test`."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests import levels
from tests.commands.test_hostile_evidence import FILES, FOLDERS, MAKERS

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("tests/brokers/test_topics.py::test_wrong_values_are_refused[0.8.2]", "versions of brokers"),
        ("tests/brokers/test_topics.py::test_wrong_values_are_refused[3.9]", None),
        ("tests/brokers/test_changes.py::test_killed_at_every_step_and_undone[2.8-alter-journalled]", "versions of brokers"),
        ("tests/brokers/wire/test_recover.py::test_recovery_killed_at_every_step[zookeeper-2.8]", "versions of brokers"),
        ("tests/brokers/test_changes.py::test_killed_after_the_write_and_resumed[3.9-config]", None),
        ("tests/brokers/wire/test_changes.py::test_a_killed_reassignment_is_resumed[kraft-4.3-journalled]", "killed at every step"),
        ("tests/stores/test_killed_audits.py::test_an_audit[local-s3-worker]", "killed at every step"),
        ("tests/stores/test_killed_audits.py::test_an_audit[local-s3-driver]", None),
        ("tests/kctl/test_times.py::test_anything", None),
    ],
)  # fmt: skip
def test_a_name_tells_the_level(name: str, reason: str | None) -> None:
    assert levels.repeated(name) == reason


def test_a_third_of_the_cases_of_a_test_is_quick() -> None:
    name = "tests/kctl/test_times.py::test_spans[a]"
    assert [levels.later(name, case) for case in range(5)] == [
        None,
        "cases of a test",
        "cases of a test",
        None,
        "cases of a test",
    ]


def test_what_runs_at_night_only_is_in_no_level_before() -> None:
    name = "tests/brokers/wire/test_recover.py::test_recovery_killed_at_every_step[%s]"
    assert levels.nightly(name % "zookeeper-2.8") == "every version"
    assert levels.nightly(name % "kraft-4.3") is None
    names = [f"tests/commands/test_replica_truth.py::test_loss_is_what_was_lost[{n}]" for n in range(100)]
    chosen = [name for name in names if levels.repeated(name) is None]
    assert chosen and not any(map(levels.nightly, chosen))
    assert 20 < sum(levels.nightly(name) is not None for name in names) < 50


def test_every_line_names_tests_that_there_are() -> None:
    """A file or function that was renamed would silently come into `make test`."""
    texts = {path.relative_to(HERE.parent).as_posix(): path.read_text() for path in HERE.rglob("test_*.py")}
    shapes = (
        "",
        "[",
        "[2.8]",
        "[zookeeper-2.8]",
        "[3.9-groups]",
        "[kraft-4.3-2]",
        "[journalled]",
        "[kraft-4.3-journalled]",
    )
    names = [
        f"{file}::{name}{shape}"
        for file, text in texts.items()
        for name in re.findall(r"^def (test_\w+)", text, re.MULTILINE)
        for shape in shapes
    ]
    for row, tests in (*levels.COMPILED, *levels.COMPILED_QUICK, *levels.COMPILED_NIGHTLY):
        assert any(map(tests.search, names)), row


@pytest.mark.parametrize(("test", "commands"), [("folders", FOLDERS), ("files", FILES)])
def test_each_command_and_each_kind_of_hostile_files_is_in_the_first_level(
    test: str, commands: list[str]
) -> None:
    kinds = [maker.__name__ for maker in MAKERS]
    pairs = [(kind, words) for kind in kinds for words in commands]
    name = f"tests/commands/test_hostile_evidence.py::test_{test}[%s-%s]"
    chosen = [pair for pair in pairs if levels.repeated(name % pair) is None]
    assert {kind for kind, _ in chosen} == {*kinds} and {words for _, words in chosen} == {*commands}
    assert len(chosen) < len(pairs) / 3


def test_what_starts_brokers_says_so(request: pytest.FixtureRequest) -> None:
    """A test that overrides the parameters of a fixture loses their markers."""
    starting = {
        "changed", "deserted", "divided", "exact", "guarded", "live", "loaded", "made", "narrow", "secured", "shared", "stopped", "two",
    }  # fmt: skip
    for item in request.session.items:
        if starting & {*getattr(item, "fixturenames", ())} and "brokers" in item.path.parts:
            assert item.get_closest_marker("brokers"), item.nodeid


@pytest.mark.parametrize(
    ("markers", "level"),
    [
        ({"brokers": "brokers", "matrix": "every version", "repeated": "starts"}, ("make test-matrix", "every version")),
        ({"brokers": "brokers", "matrix": "matrix"}, ("make test-matrix", "versions, steps and servers")),
        ({"brokers": "brokers", "slow": "slow", "repeated": "starts"}, ("make test-all", "starts")),
        ({"slow": "slow", "spark": "spark"}, ("make test", "spark")),
        ({"later": "recordings"}, ("make test", "recordings")),
        ({"parametrize": "parametrize"}, ("make test", "")),
    ],
)  # fmt: skip
def test_what_is_left_out_is_in_one_level(markers: dict[str, str], level: tuple[str, str]) -> None:
    assert levels.left_to(markers) == level


def test_the_end_of_a_run_names_the_levels_that_add_to_it() -> None:
    all_versions, repeats = ("make test-matrix", "every version"), ("make test-all", "recordings")
    quick = Counter({("make test", "slow"): 1200, ("make test", "java"): 3, repeats: 5, all_versions: 7})
    of_test_all = Counter({("make test", ""): 5000, ("make test", "slow"): 1200, all_versions: 7})
    assert levels.what_levels_add(quick) == [
        "1,203 tests more in `make test`: slow 1,200, java 3",
        "5 tests more in `make test-all`: recordings 5",
        "7 tests more in `make test-matrix`: every version 7",
    ]
    assert levels.what_levels_add(of_test_all) == ["7 tests more in `make test-matrix`: every version 7"]
