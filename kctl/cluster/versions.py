"""The Kafka version of a cluster, as far as visible.

ZooKeeper never names the version. What is found is a lower bound: the forms of znodes that brokers have
written and the paths that they made at start-up. `--kafka-version` pins it where the bound is too low.
"""

import re
from typing import NamedTuple

from kctl.errors import BadValue


class KafkaVersion(NamedTuple):
    """A Kafka release as far as it matters: 0.8.2, 0.10.1, 1.1, 2.8, 3.9; compares in order."""

    major: int
    minor: int
    patch: int = 0

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}" if self.major == 0 else f"{self.major}.{self.minor}"


def parse_version(text: str) -> KafkaVersion:
    """The version that `2.8`, `0.10.2.1` or `3.9.1` stands for; from 1.0 the third number is ignored."""
    if not re.fullmatch(r"\d{1,9}(\.\d{1,9}){1,3}", text):
        raise BadValue(f"{text!r} is not a Kafka version", "write it as 0.10.2 or 2.8")
    parts = [int(part) for part in text.split(".")]
    patch = parts[2] if parts[0] == 0 and len(parts) > 2 else 0
    return KafkaVersion(parts[0], parts[1], patch)


V0_8_2 = KafkaVersion(0, 8, 2)
V0_9 = KafkaVersion(0, 9)
V0_10 = KafkaVersion(0, 10)
V0_10_1 = KafkaVersion(0, 10, 1)
V0_10_2 = KafkaVersion(0, 10, 2)
V0_11 = KafkaVersion(0, 11)
V1_0 = KafkaVersion(1, 0)
V1_1 = KafkaVersion(1, 1)
V2_0 = KafkaVersion(2, 0)
V2_1 = KafkaVersion(2, 1)
V2_3 = KafkaVersion(2, 3)
V2_4 = KafkaVersion(2, 4)
V2_7 = KafkaVersion(2, 7)
V2_8 = KafkaVersion(2, 8)
V3_0 = KafkaVersion(3, 0)
V3_4 = KafkaVersion(3, 4)
V3_7 = KafkaVersion(3, 7)
V3_9 = KafkaVersion(3, 9)
V4_0 = KafkaVersion(4, 0)
FIRST_UNKNOWN = KafkaVersion(4, 4)
"""The first version whose rules kctl does not know."""
