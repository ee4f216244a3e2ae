"""The lists of mutants are true: each line that they change is there, once, and its tests are."""

import pytest

from tests.mutants.run import ROOT, mutants, selection

LEAST = 150


@pytest.mark.slow
def test_every_mutant_changes_a_line_that_is_there_into_other_python() -> None:
    for mutant in mutants():
        compile(mutant.source(), mutant.file, "exec")
        assert mutant.before != mutant.after, mutant


def test_every_mutant_names_tests_that_are_there() -> None:
    for mutant in mutants():
        paths = [name for name in selection(mutant.tests) if name.startswith("tests/")]
        assert paths, mutant
        assert all((ROOT / name.split("::")[0]).exists() for name in paths), mutant


def test_there_are_enough_of_them_and_none_twice() -> None:
    listed = [*mutants()]
    assert len(listed) == len(set(listed))
    assert len(listed) >= LEAST


def test_a_line_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ValueError, match="occurs 0 times"):
        next(mutants())._replace(before="nothing such").source()
