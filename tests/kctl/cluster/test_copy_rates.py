"""Rates and times left from two looks at the sizes of replicas."""

from commands.cli.render import Page
from commands.reassign.rows import move_status_row, move_status_text
from kctl.cluster.state import ClusterState, EntityConfig
from kctl.cluster.versions import KafkaVersion
from kctl.model import TopicPartition
from kctl.operations.reassignment.verification import DONE, IN_PROGRESS, MoveStatus, copy_rates, with_rates

TP = TopicPartition("orders", 0)


def move_status(
    state: str = IN_PROGRESS, isr: tuple[int, ...] = (1, 2), left: int | None = 1500
) -> MoveStatus:
    return MoveStatus(TP, state, (3, 4), (3, 4, 1, 2), isr, 1, bytes_left=left)


def state_with(**rates: str) -> ClusterState:
    """A cluster where replicas 0:3, 1:3 and 0:4 are throttled on their followers; `b3="100"` is the rate of broker 3."""
    lists = {
        "follower.replication.throttled.replicas": "0:3,1:3,0:4",
        "leader.replication.throttled.replicas": "*",
    }
    configs = [EntityConfig("topics", "orders", lists)]
    for name, rate in rates.items():
        key = "leader.replication.throttled.rate" if name == "b1" else "follower.replication.throttled.rate"
        configs.append(EntityConfig("brokers", name[1:], {key: rate}))
    found = {(one.entity_type, one.entity_name): one for one in configs}
    return ClusterState(
        cluster_id=None, kafka_version=KafkaVersion(3, 9), brokers={}, controller=None, configs=found
    )


def test_growth_by_the_second() -> None:
    before = {(TP, 1): 1000, (TP, 3): 100, (TP, 4): 500}
    after = {(TP, 1): 1000, (TP, 3): 600, (TP, 4): 400, (TP, 5): 50}
    assert copy_rates(before, after, 5.0) == {(TP, 1): 0, (TP, 3): 100, (TP, 4): 0, (TP, 5): 10}


def test_the_slowest_replica_tells_the_time_left() -> None:
    sizes = {(TP, 1): 1000, (TP, 3): 600, (TP, 4): 900}
    (one,) = with_rates([move_status()], sizes, {(TP, 3): 100.0, (TP, 4): 10.0}, state_with())
    assert (one.bytes_per_second, one.seconds_left) == (110, 10)


def test_no_time_is_told_where_a_replica_stands_still() -> None:
    sizes = {(TP, 1): 1000, (TP, 3): 600, (TP, 4): 900}
    (one,) = with_rates([move_status()], sizes, {(TP, 3): 100.0, (TP, 4): 0.0}, state_with())
    assert (one.bytes_per_second, one.seconds_left) == (100, None)


def test_nothing_is_said_of_what_is_done_or_not_measured() -> None:
    for one in (move_status(DONE, (3, 4)), move_status(left=None), move_status(isr=(3, 4))):
        assert with_rates([one], {}, {}, state_with()) == [one]
    assert with_rates([move_status()], {(TP, 1): 1}, None, state_with()) == [move_status()]


def test_moves_share_the_throttle_of_a_broker() -> None:
    other = TopicPartition("orders", 1)
    sizes = {(TP, 1): 1000, (TP, 3): 600, (TP, 4): 900, (other, 1): 2000, (other, 3): 1000}
    second = MoveStatus(other, IN_PROGRESS, (1, 3), (1, 3), (1,), 1, bytes_left=1000)
    first = move_status(left=500)
    # What is seen in five seconds is more than the throttle allows over time, or nothing at all.
    rates = {(TP, 3): 200_000.0, (TP, 4): 0.0, (other, 3): 0.0}
    found = with_rates([first, second], sizes, rates, state_with(b3="100", b4="10"))
    assert [one.seconds_left for one in found] == [
        14,
        14,
    ]  # 1400 bytes to broker 3 at 100; 100 to broker 4 at 10
    found = with_rates([first, second], sizes, None, state_with(b3="100", b1="10"))
    assert [one.seconds_left for one in found] == [150, 150]  # 1500 bytes from broker 1
    (alone,) = with_rates([first], sizes, None, state_with(b3="100", b4="10"))
    assert alone.seconds_left == 10


def test_what_is_not_throttled_goes_at_the_rate_seen() -> None:
    free = TopicPartition("orders", 7)
    one = MoveStatus(free, IN_PROGRESS, (1, 3), (1, 3), (1,), 1, bytes_left=1000)
    (found,) = with_rates([one], {(free, 1): 1000}, {(free, 3): 500.0}, state_with(b3="1"))
    assert found.seconds_left == 2


def test_the_total_says_how_long_all_takes() -> None:
    rows = [move_status_row(move_status()._replace(seconds_left=seconds)) for seconds in (30, 150)]
    *_, total = move_status_text(rows, Page(200, False))
    assert total == "0 of 2 partitions done, 2.93 KiB left, about 2 min"
    *_, total = move_status_text([*rows, move_status_row(move_status())], Page(200, False))
    assert "about" not in total
