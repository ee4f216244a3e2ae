"""Rates and times left from two looks at the sizes of replicas."""

from kctl.cluster.copy_rates import copy_rates, with_rates
from kctl.cluster.verification import DONE, IN_PROGRESS, Standing
from kctl.model import TopicPartition

TP = TopicPartition("orders", 0)


def standing(state: str = IN_PROGRESS, isr: tuple[int, ...] = (1, 2), left: int | None = 1500) -> Standing:
    return Standing(TP, state, (3, 4), (3, 4, 1, 2), isr, 1, bytes_left=left)


def test_growth_by_the_second() -> None:
    before = {(TP, 1): 1000, (TP, 3): 100, (TP, 4): 500}
    after = {(TP, 1): 1000, (TP, 3): 600, (TP, 4): 400, (TP, 5): 50}
    assert copy_rates(before, after, 5.0) == {(TP, 1): 0, (TP, 3): 100, (TP, 4): 0, (TP, 5): 10}


def test_the_slowest_replica_tells_the_time_left() -> None:
    sizes = {(TP, 1): 1000, (TP, 3): 600, (TP, 4): 900}
    (one,) = with_rates([standing()], sizes, {(TP, 3): 100.0, (TP, 4): 10.0})
    assert (one.bytes_per_second, one.seconds_left) == (110, 10)


def test_no_time_is_told_where_a_replica_stands_still() -> None:
    sizes = {(TP, 1): 1000, (TP, 3): 600, (TP, 4): 900}
    (one,) = with_rates([standing()], sizes, {(TP, 3): 100.0, (TP, 4): 0.0})
    assert (one.bytes_per_second, one.seconds_left) == (100, None)


def test_nothing_is_said_of_what_is_done_or_not_measured() -> None:
    for one in (standing(DONE, (3, 4)), standing(left=None), standing(isr=(3, 4))):
        assert with_rates([one], {}, {}) == [one]
    assert with_rates([standing()], {(TP, 1): 1}, None) == [standing()]
