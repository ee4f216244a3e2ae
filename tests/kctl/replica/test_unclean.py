"""What makes an election unclean: what controllers name, held against the ISR that is known before it."""

from __future__ import annotations

import pytest

from kctl.replica.drops import is_unclean
from kctl.replica.leaders import Leaders, Led


def leaders(*known: Led) -> Leaders:
    return Leaders(known, {led.leader_epoch: led for led in known})


def led(epoch: int, leader: int, *isr: int, how: str = "unknown", is_last: bool = False) -> Led:
    return Led(epoch, leader, isr, isr, how=how, is_isr_last=is_last)


@pytest.mark.parametrize(
    ("before", "how", "expected"),
    [
        # The ISR may have shrunk unseen under a leader without logs: what the controller names stays.
        ([led(4, 1, 1, 2)], "unclean", True),
        ([led(4, 1, 1, 2)], "unknown", False),
        ([led(4, 1, 1, 3)], "unclean", True),
        ([led(4, 1, 1, 3)], "unknown", False),
        ([led(4, 1, 1, 3, is_last=True)], "unknown", True),
        # Logs of that leader that begin late do not take back what the controller said.
        ([led(4, 1, 1, 2, is_last=True)], "unclean", True),
        ([led(4, 1, 1, 2, is_last=True)], "unknown", False),
        # Before 1.1 the controller warns whoever comes back where nobody was left in the ISR.
        ([led(3, 2, 2), Led(4, -1, ())], "unclean", False),
        ([led(3, 1, 1), Led(4, -1, ())], "unclean", True),
        ([led(3, 1, 1), Led(4, -1, ())], "unknown", True),
        ([], "unclean", True),
        ([], "unknown", False),
    ],
)
def test_what_the_controller_names_unclean_stays_so(before: list[Led], how: str, expected: bool) -> None:
    elected = led(5, 2, 2, how=how)
    assert is_unclean(leaders(*before, elected), elected) is expected


def test_an_eligible_leader_replica_leads_cleanly() -> None:
    before = Led(4, -1, (), (), is_isr_last=True, eligible=(2,))
    elected = led(5, 2, 2)
    assert not is_unclean(leaders(led(3, 1, 1), before, elected), elected)
