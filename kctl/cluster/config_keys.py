"""Every key of a topic's configuration, since when, and which values each version takes: one table.

A key with several rows changed its rule; the newest row not above the version holds. 0.8.2 only parses.
Source: core/src/main/scala/kafka/log/LogConfig.scala @ 0.8.2.1 to 3.4.1;
storage/src/main/java/org/apache/kafka/storage/internals/log/LogConfig.java @ 3.9.0-rc3
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from kctl.cluster.versions import (
    V0_8_2,
    V0_9,
    V0_10,
    V0_10_1,
    V0_11,
    V1_1,
    V2_0,
    V2_1,
    V2_3,
    V2_4,
    V2_7,
    V2_8,
    V3_0,
    KafkaVersion,
)

V3_6, V3_8 = KafkaVersion(3, 6), KafkaVersion(3, 8)
Check = Callable[[str], str | None]  # why the value is wrong; None if it is right
INT, LONG = 2**31 - 1, 2**63 - 1
UNCLEAN = "unclean.leader.election.enable"


def whole(lowest: int | None, highest: int) -> Check:
    """A whole number of Java's: `highest` tells int from long; no lowest means the type's own."""
    low = -highest - 1 if lowest is None else lowest

    def check(text: str) -> str | None:
        stripped = text.strip()
        if not re.fullmatch(r"[+-]?[0-9]+", stripped):
            return "not a whole number"
        number = int(stripped) if len(stripped) < 30 else highest + 1
        if number > highest:
            return f"larger than {highest}"
        return f"smaller than {low}" if number < low else None

    return check


def between(low: float, high: float) -> Check:
    """A number with a fraction."""

    def check(text: str) -> str | None:
        try:
            number = float(text)
        except ValueError:
            return "not a number"
        return None if low <= number <= high else f"not between {low:g} and {high:g}"

    return check


def one_of(*allowed: str, ignore_case: bool = False) -> Check:
    """One of the allowed words."""

    def check(text: str) -> str | None:
        value = text.strip().lower() if ignore_case else text.strip()
        return None if value in allowed else f"not one of {', '.join(allowed)}"

    return check


def list_of(*allowed: str) -> Check:
    """A list of allowed words, by comma; not empty."""

    def check(text: str) -> str | None:
        wrong = [part.strip() for part in text.split(",") if part.strip() not in allowed]
        return f"{wrong[0]!r} is not one of {', '.join(allowed)}" if wrong else None

    return check


def any_text(text: str) -> str | None:
    """Whatever is given."""
    return None


def throttled_replicas(text: str) -> str | None:
    """`*`, nothing, or PARTITION:BROKER by comma."""
    if text.strip() in ("", "*"):
        return None
    good = all(re.fullmatch(r"\s*[0-9]+:[0-9]+\s*", part) for part in text.split(","))
    return None if good else "not * and not a list of PARTITION:BROKER"


def format_version(text: str) -> str | None:
    """A message format's version: 0.10.0, 2.8-IV1, 3.0."""
    return None if re.fullmatch(r"[0-9]+(\.[0-9]+){1,3}(-IV[0-9]+)?", text.strip()) else "not a version"


def never_true(text: str) -> str | None:
    """A switch that brokers with ZooKeeper refuse."""
    return boolean(text) or (
        "not to be set on a cluster with ZooKeeper" if text.strip().lower() == "true" else None
    )


boolean = one_of("true", "false", ignore_case=True)
any_int, any_long = whole(None, INT), whole(None, LONG)
natural_int, natural_long = whole(0, INT), whole(0, LONG)
CODECS = ("uncompressed", "snappy", "lz4", "gzip", "producer")


class Key(NamedTuple):
    """A key, from a version on."""

    name: str
    since: KafkaVersion
    check: Check


TOPIC_KEYS = (
    Key("cleanup.policy", V0_8_2, any_text),
    Key("cleanup.policy", V0_9, one_of("delete", "compact")),
    Key("cleanup.policy", V0_10_1, list_of("delete", "compact")),
    Key("compression.type", V0_9, one_of(*CODECS)),
    Key("compression.type", V2_1, one_of(*CODECS, "zstd")),
    Key("compression.gzip.level", V3_8, lambda text: None if text.strip() == "-1" else whole(1, 9)(text)),
    Key("compression.lz4.level", V3_8, whole(1, 17)),
    Key("compression.zstd.level", V3_8, whole(-131072, 22)),
    Key("delete.retention.ms", V0_8_2, any_long),
    Key("delete.retention.ms", V0_9, natural_long),
    Key("file.delete.delay.ms", V0_8_2, any_int),
    Key("file.delete.delay.ms", V0_9, natural_long),
    Key("flush.messages", V0_8_2, any_long),
    Key("flush.messages", V0_9, natural_long),
    Key("flush.messages", V3_0, whole(1, LONG)),
    Key("flush.ms", V0_8_2, any_long),
    Key("flush.ms", V0_9, natural_long),
    Key("follower.replication.throttled.replicas", V0_10_1, throttled_replicas),
    Key("index.interval.bytes", V0_8_2, any_int),
    Key("index.interval.bytes", V0_9, natural_int),
    Key("leader.replication.throttled.replicas", V0_10_1, throttled_replicas),
    Key("local.retention.bytes", V3_0, whole(-2, LONG)),
    Key("local.retention.ms", V3_0, whole(-2, LONG)),
    Key("max.compaction.lag.ms", V2_3, whole(1, LONG)),
    Key("max.message.bytes", V0_8_2, any_int),
    Key("max.message.bytes", V0_9, natural_int),
    Key("message.downconversion.enable", V2_0, boolean),
    Key("message.format.version", V0_10, format_version),
    Key("message.timestamp.after.max.ms", V3_6, natural_long),
    Key("message.timestamp.before.max.ms", V3_6, natural_long),
    Key("message.timestamp.difference.max.ms", V0_10, natural_long),
    Key("message.timestamp.type", V0_10, one_of("CreateTime", "LogAppendTime")),
    Key("min.cleanable.dirty.ratio", V0_8_2, between(float("-inf"), float("inf"))),
    Key("min.cleanable.dirty.ratio", V0_9, between(0, 1)),
    Key("min.compaction.lag.ms", V0_10_1, natural_long),
    Key("min.insync.replicas", V0_8_2, whole(1, INT)),
    Key("preallocate", V0_9, boolean),
    Key("remote.log.copy.disable", KafkaVersion(3, 9), never_true),
    Key("remote.log.delete.on.disable", KafkaVersion(3, 9), never_true),
    Key("remote.storage.enable", V3_0, boolean),
    Key("retention.bytes", V0_8_2, any_long),
    Key("retention.ms", V0_8_2, any_long),
    Key("retention.ms", V2_0, whole(-1, LONG)),
    Key("segment.bytes", V0_8_2, any_int),
    Key("segment.bytes", V0_9, whole(14, INT)),
    Key("segment.index.bytes", V0_8_2, any_int),
    Key("segment.index.bytes", V0_9, natural_int),
    Key("segment.index.bytes", V3_0, whole(4, INT)),
    Key("segment.jitter.ms", V0_8_2, any_long),
    Key("segment.jitter.ms", V0_9, natural_long),
    Key("segment.ms", V0_8_2, any_long),
    Key("segment.ms", V0_9, natural_long),
    Key("segment.ms", V2_0, whole(1, LONG)),
    Key(UNCLEAN, V0_8_2, one_of("true", "false")),
    Key(UNCLEAN, V0_9, boolean),
)
QUOTA_KEYS = (
    Key("producer_byte_rate", V0_9, whole(1, LONG)),
    Key("consumer_byte_rate", V0_9, whole(1, LONG)),
    Key("request_percentage", V0_11, between(0, float("inf"))),
    Key("controller_mutation_rate", V2_7, between(0, float("inf"))),
)
BROKER_KEYS = (
    Key("leader.replication.throttled.rate", V0_10_1, natural_long),
    Key("follower.replication.throttled.rate", V0_10_1, natural_long),
    Key("replica.alter.log.dirs.io.max.bytes.per.second", V1_1, natural_long),
)
IP_KEYS = (Key("connection_creation_rate", V2_8, natural_int),)

# Entity types whose configurations only the broker itself returns, changes and applies.
KEPT_BY_EACH_BROKER = ("brokers", "broker-loggers")

# Entity types that only Kafka's protocol has, with the KIP.
BROKERS_ONLY = frozenset({"broker-loggers", "client-metrics", "groups"})
KIPS = {"broker-loggers": "KIP-412", "client-metrics": "KIP-714", "groups": "KIP-848"}

# Entity types, their first version, and their keys; none if brokers list them.
ENTITY_TYPES: dict[str, tuple[KafkaVersion, tuple[Key, ...]]] = {
    "topics": (V0_8_2, TOPIC_KEYS),
    "clients": (V0_9, QUOTA_KEYS),
    "users": (V0_10_1, QUOTA_KEYS),
    "brokers": (V0_10_1, BROKER_KEYS),
    "ips": (V2_8, IP_KEYS),
    "broker-loggers": (V2_4, ()),
    "client-metrics": (KafkaVersion(3, 7), ()),
    "groups": (KafkaVersion(4, 0), ()),
}


@lru_cache(1024)
def _checks_of_topics(name: str) -> tuple[Check, ...]:
    """What versions from 0.9 on check of a topic's key."""
    rows = [key for key in TOPIC_KEYS if key.name == name]
    first = max((key.since for key in rows if key.since <= V0_9), default=V0_9)
    return tuple(key.check for key in rows if key.since >= first)


def refusal_of_all(name: str, value: str) -> str | None:
    """Why no version from 0.9 on takes a value of a topic's key; None where one does, where it is empty, or the key is not known."""
    reasons = [boolean(value) if check is never_true else check(value) for check in _checks_of_topics(name)]
    return reasons[-1] if value and reasons and all(reasons) else None


def key_for(keys: tuple[Key, ...], name: str, version: KafkaVersion) -> Key | None:
    """The row in force; None where the version has no such key."""
    return max(
        (k for k in keys if k.name == name and k.since <= version), key=lambda k: k.since, default=None
    )
