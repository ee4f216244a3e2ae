"""Points in time that people write, and those that rows hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kctl.errors import BadValue
from kctl.times import iso, parse_iso, parse_time


@pytest.mark.parametrize(
    "text",
    [
        "9" * 5000,
        "9" * 400 + "d",
        "+99999999999999w",
        str(2**63),
        str(-(2**63) - 1),
        "²",
        "",
        "24:00",
        "x" * 9999,
    ],
)
def test_what_is_no_time_of_64_bits_is_wrong_usage(text: str) -> None:
    with pytest.raises(BadValue) as found:
        parse_time(text, "--from", now=0)
    assert len(str(found.value)) < 200


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_time_of_a_row_is_read_as_it_was(milliseconds: int) -> None:
    assert parse_iso(iso(milliseconds)) == milliseconds


def test_an_unknown_time_stays_unknown() -> None:
    assert parse_iso(iso(None)) == parse_iso(iso(-1)) == -1
