"""Which tests `make test` leaves to `make test-all`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import levels

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("tests/brokers/test_topics.py::test_wrong_values_are_refused[0.8.2]", "versions of brokers"),
        ("tests/brokers/test_topics.py::test_wrong_values_are_refused[3.9]", None),
        ("tests/brokers/test_changes.py::test_killed_at_every_step_and_undone[2.8-alter-journalled]", "versions of brokers"),
        ("tests/brokers/test_changes.py::test_killed_after_the_write_and_resumed[1.1-config]", None),
        ("tests/brokers/wire/test_changes.py::test_a_killed_reassignment_is_resumed[kraft-4.3-journalled]", "killed at every step"),
        ("tests/kctl/test_times.py::test_anything", None),
    ],
)  # fmt: skip
def test_a_name_tells_the_level(name: str, reason: str | None) -> None:
    assert levels.repeated(name) == reason


def test_every_line_names_tests_that_there_are() -> None:
    """A file or function that was renamed would silently come into `make test`."""
    texts = {path.relative_to(HERE.parent).as_posix(): path.read_text() for path in HERE.rglob("test_*.py")}
    for row, tests in levels.COMPILED:
        names = [
            f"{file}::{line.removeprefix('def ').partition('(')[0]}"
            for file, text in texts.items()
            for line in text.splitlines()
            if line.startswith("def test_")
        ]
        shapes = ("", "[", "[2.8]", "[zookeeper-2.8]", "[3.9-groups]", "[journalled]")
        assert any(tests.search(name + shape) for name in names for shape in shapes), row
