"""Numbers in text: what int() refuses, takes long for, or takes although no program writes it so."""

import pytest

from formats.broker_logs.objects import topic_partition
from formats.whole_numbers import whole_number


@pytest.mark.parametrize(
    "text", ["", "-1", "+1", "1_000", "²", "٣", "9" * 19, "9" * 5000, "1e3", "0x1", "1.0"]
)
def test_what_is_no_whole_number(text: str) -> None:
    assert whole_number(text) is None
    assert topic_partition(f"orders-{text}") in (
        None,
        ("orders-", 1),
    )  # `orders--1` is partition 1 of `orders-`


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("007", 7), ("9" * 18, 10**18 - 1)])
def test_what_is_one(text: str, number: int) -> None:
    assert whole_number(text) == number
