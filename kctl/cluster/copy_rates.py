"""How fast replicas are copied, from two looks at their sizes.

A follower's log grows in steps of whole fetches, and stands still between them where it is throttled: looks should
lie some seconds apart.
"""

from collections.abc import Iterable, Mapping

from kctl.cluster.verification import DONE, Standing
from kctl.model import TopicPartition

Sizes = Mapping[tuple[TopicPartition, int], int]  # bytes of each replica


def copy_rates(before: Sizes, after: Sizes, seconds: float) -> dict[tuple[TopicPartition, int], float]:
    """Bytes a second by which each replica has grown; 0 for one that became smaller (retention, compaction)."""
    return {key: max(size - before.get(key, 0), 0) / seconds for key, size in after.items()}


def with_rates(
    standings: Iterable[Standing], sizes: Sizes, rates: Mapping[tuple[TopicPartition, int], float] | None
) -> list[Standing]:
    """The standings with the rate seen and the time left at it: that of the slowest replica, if all grow."""
    if rates is None:
        return list(standings)
    return [_with_rate(one, sizes, rates) for one in standings]


def _with_rate(one: Standing, sizes: Sizes, rates: Mapping[tuple[TopicPartition, int], float]) -> Standing:
    behind = [(one.partition, broker) for broker in one.missing]
    if one.state == DONE or not behind or one.bytes_left is None:
        return one
    seen = [rates.get(key, 0.0) for key in behind]
    whole = max((sizes.get((one.partition, b), 0) for b in one.replicas), default=0)
    left = [max(whole - sizes.get(key, 0), 0) for key in behind]
    seconds = None
    if all(rate > 0 or not missing for rate, missing in zip(seen, left, strict=True)):
        seconds = max(-(-missing // max(int(rate), 1)) for rate, missing in zip(seen, left, strict=True))
    return one._replace(bytes_per_second=int(sum(seen)), seconds_left=seconds)
