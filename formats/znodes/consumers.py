"""Old consumers, which registered themselves in ZooKeeper. Source: kafka/utils/ZkUtils.scala @ 0.8.2.1"""

from formats.values import Struct
from formats.znodes.json_text import integer, long_text, mapping, optional_text, parse_object


class ConsumerZnode(Struct, frozen=True, kw_only=True):
    """`/consumers/GROUP/ids/ID`: an old consumer and what it subscribes to, streams by topic or pattern."""

    subscription: dict[str, int]
    pattern: str  # static, white_list or black_list
    timestamp: int | None = None  # milliseconds


def parse_consumer(data: bytes | None) -> ConsumerZnode:
    """An old consumer's registration."""
    values = parse_object(data)
    streams = mapping(values, "subscription")
    integer(values, "version", 1)
    return ConsumerZnode(
        subscription={topic: integer(streams, topic) for topic in streams},
        pattern=optional_text(values, "pattern") or "static",
        timestamp=long_text(values, "timestamp"),
    )
