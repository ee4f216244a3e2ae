"""The release of a broker, from the versions of requests that it knows."""

from collections.abc import Mapping

PRODUCE, FETCH, LIST_OFFSETS, LEADER_AND_ISR, JOIN_GROUP = 0, 1, 2, 4, 11
ADD_PARTITIONS_TO_TXN, DESCRIBE_ACLS, DESCRIBE_LOG_DIRS, DESCRIBE_CLIENT_QUOTAS = 24, 29, 35, 48
# What each release was the first to know, newest first: the key of a request and a version of it.
FIRST_TO_KNOW = (
    ((4, 3), DESCRIBE_LOG_DIRS, 5),
    ((4, 2), LIST_OFFSETS, 11),
    ((4, 1), PRODUCE, 13),
    ((4, 0), LIST_OFFSETS, 10),
    ((3, 9), FETCH, 17),
    ((3, 8), PRODUCE, 11),
    ((3, 7), FETCH, 16),
    ((3, 6), ADD_PARTITIONS_TO_TXN, 4),
    ((3, 5), FETCH, 15),
    ((3, 4), LEADER_AND_ISR, 7),  # with ZooKeeper alone
    ((3, 3), DESCRIBE_ACLS, 3),
    ((3, 2), JOIN_GROUP, 9),
    ((3, 1), FETCH, 13),
    ((3, 0), LIST_OFFSETS, 7),
    ((2, 8), PRODUCE, 9),
    ((2, 7), FETCH, 12),
    ((2, 6), DESCRIBE_CLIENT_QUOTAS, 0),
    ((2, 5), DESCRIBE_ACLS, 2),
    ((2, 4), PRODUCE, 8),
    ((2, 3), FETCH, 11),
    ((2, 2), LIST_OFFSETS, 5),
    ((2, 1), FETCH, 10),
    ((2, 0), FETCH, 8),
)
OLDEST = (1, 1)


def release_of(versions: Mapping[int, tuple[int, int]]) -> tuple[int, int]:
    """The release by the first and last version of each request."""
    for release, key, version in FIRST_TO_KNOW:
        first, last = versions.get(key, (0, -1))
        if first <= version <= last:
            return release
    return OLDEST
