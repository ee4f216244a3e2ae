"""Features of a KRaft cluster: what each level adds, and whether it can be downgraded.

Source: server-common/src/main/java/org/apache/kafka/server/common/{MetadataVersion,Feature,KRaftVersion,GroupVersion,
TransactionVersion,EligibleLeaderReplicasVersion,ShareVersion,StreamsVersion}.java @ 4.3.0; KIP-584, KIP-778, KIP-1022
"""

from typing import NamedTuple

METADATA_VERSION = "metadata.version"


class FeatureLevel(NamedTuple):
    """A level of a feature. `is_one_way`: it changes what is written to the metadata log, and cannot be downgraded."""

    level: int
    release: str
    is_one_way: bool
    adds: str


def _levels(table: str) -> tuple[FeatureLevel, ...]:
    rows = (line.split(maxsplit=3) for line in table.strip().splitlines())
    return tuple(
        FeatureLevel(int(level), release, mark == "!", adds if adds != "-" else "")
        for level, release, mark, adds in rows
    )


# FeatureLevel, first release, `!` if there is no downgrade below it, what it adds.
LEVELS: dict[str, tuple[FeatureLevel, ...]] = {
    METADATA_VERSION: _levels("""
        1   3.0-IV1  !  metadata in KRaft
        2   3.1-IV0  .  KIP-516: topic ids in Fetch
        3   3.2-IV0  !  KIP-704: recovery of a leader after an unclean election
        4   3.3-IV0  .  KIP-778: metadata.version as a feature
        5   3.3-IV1  !  KIP-835: no-op records in the metadata log
        6   3.3-IV2  !  one record for changes of a broker's registration
        7   3.3-IV3  !  KIP-841: controlled shutdown in registrations; such a broker does not join an ISR
        8   3.4-IV0  !  KIP-866: migration from ZooKeeper
        9   3.5-IV0  .  KIP-405: tiered storage
        10  3.5-IV1  .  KIP-903: broker epochs in Fetch; a replica of an earlier start does not join the ISR
        11  3.5-IV2  !  KIP-900: SCRAM credentials in KRaft
        12  3.6-IV0  .  KAFKA-15021: the leader epoch stays when the ISR shrinks
        13  3.6-IV1  !  KIP-868: transactions of metadata records
        14  3.6-IV2  !  KAFKA-15219: delegation tokens in KRaft
        15  3.7-IV0  !  KIP-919: registrations of controllers
        16  3.7-IV1  .  -
        17  3.7-IV2  !  KIP-858: several log directories a broker (JBOD)
        18  3.7-IV3  .  -
        19  3.7-IV4  .  KIP-951: the new leader in answers of Fetch and Produce
        20  3.8-IV0  .  -
        21  3.9-IV0  .  KIP-1005: ListOffsets for the last tiered offset
        22  4.0-IV0  .  KIP-848: group.version 1 in new clusters
        23  4.0-IV1  !  KIP-966: records of eligible leader replicas
        24  4.0-IV2  .  KIP-890: transaction.version 2 in new clusters
        25  4.0-IV3  .  KIP-1075: ListOffsets of tiered records does not block
        26  4.1-IV0  .  KIP-966: eligible leader replicas in new clusters
        27  4.1-IV1  .  KIP-1166: followers learn the high watermark at once
        28  4.2-IV0  .  KIP-932: share groups in new clusters
        29  4.2-IV1  .  KIP-1071: streams groups in new clusters
        30  4.3-IV0  !  KIP-1066: cordoned log directories
    """),
    "kraft.version": _levels("""
        1   3.9      !  KIP-853: voters that can be added and removed, known by directory id
    """),
    "group.version": _levels("""
        1   4.0      .  KIP-848: the consumer group protocol
    """),
    "transaction.version": _levels("""
        1   4.0      .  KIP-890: records of transactions that later versions may add fields to
        2   4.0      .  KIP-890: a producer epoch for each transaction; late writes are refused
    """),
    "eligible.leader.replicas.version": _levels("""
        1   4.0      .  KIP-966: replicas that left a small ISR may lead again without loss; a preview in 4.0
    """),
    "share.version": _levels("""
        1   4.1      .  KIP-932: share groups; a preview in 4.1
    """),
    "streams.version": _levels("""
        1   4.2      .  KIP-1071: streams groups
    """),
}


def between(name: str, lower: int, upper: int) -> list[FeatureLevel]:
    """The known levels above `lower`, up to `upper`."""
    return [level for level in LEVELS.get(name, ()) if lower < level.level <= upper]


def one_way(name: str, lower: int, upper: int) -> list[FeatureLevel]:
    """Those of them that cannot be downgraded; a level unknown to this kctl may be one."""
    known = {level.level for level in LEVELS.get(name, ())}
    unknown = [
        FeatureLevel(level, "?", True, "not known to this kctl")
        for level in range(lower + 1, upper + 1)
        if level not in known
    ]
    return [level for level in between(name, lower, upper) if level.is_one_way] + unknown


def described_levels(name: str, lower: int, upper: int) -> list[str]:
    """What levels add, `23 (4.0-IV1): KIP-966: ...; no way back`."""
    return [
        f"{level.level} ({level.release}): {level.adds}{'; no way back' if level.is_one_way else ''}"
        for level in between(name, lower, upper)
        if level.adds
    ]
