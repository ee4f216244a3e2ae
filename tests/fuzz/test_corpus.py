"""What fuzzing found once stays mended, and what Kafka wrote breaks no invariant."""

from pathlib import Path

import pytest

from tests.fuzz.invariants import INVARIANTS, ORIGINALS, hold, seeds
from tests.fuzz.mutations import MUTATORS


@pytest.mark.slow
@pytest.mark.parametrize(("name", "path"), [pytest.param(n, p, id=f"{n}-{p.name}") for n, p in seeds()])
def test_what_was_found_once(name: str, path: Path, tmp_path: Path) -> None:
    hold(name, path.read_bytes(), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", INVARIANTS)
def test_a_sound_file_holds(name: str, tmp_path: Path) -> None:
    hold(name, ORIGINALS[name]()[0], tmp_path)


def test_every_format_has_originals_mutators_and_invariants() -> None:
    assert set(MUTATORS) == set(ORIGINALS) == set(INVARIANTS)
    assert {name for name, _ in seeds()} <= set(INVARIANTS)
