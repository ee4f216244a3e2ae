"""A plan cut into batches: each small enough for one request, and moving no more data than asked.

A ZooKeeper controller takes one request at a time and a batch ends with its slowest partition, so batches by
data are made of about the same size, largest partitions first.
"""

from collections.abc import Callable, Mapping

from kctl.model import TopicPartition

Replicas = tuple[int, ...]
DEFAULT_BATCH_BYTES = 500_000  # of the encoded request; ZooKeeper takes a little above 1,000,000
EMPTY_REQUEST = 33  # {"version":1,"partitions":[]} and a byte or two


def encoded_size(tp: TopicPartition, replicas: Replicas) -> int:
    """Bytes of one partition in a request, its comma included."""
    ids = sum(len(str(broker)) + 1 for broker in replicas) - 1
    return len('{"topic":"","partition":,"replicas":[]},') + len(tp.topic) + len(str(tp.partition)) + ids


def cut(
    targets: Mapping[TopicPartition, Replicas],
    data: Callable[[TopicPartition], int],
    *,
    most_bytes: int = DEFAULT_BATCH_BYTES,
    most_data: int | None = None,
    most_moves: int | None = None,
) -> list[dict[TopicPartition, Replicas]]:
    """The batches in order. `data`: bytes that move for a partition. One partition always fits, however large."""
    room = most_bytes - EMPTY_REQUEST
    sizes = {tp: encoded_size(tp, replicas) for tp, replicas in targets.items()}
    batches: list[_Batch] = []
    if most_data is None:
        order = sorted(targets)
    else:
        total = sum(map(data, targets))
        order = sorted(targets, key=lambda tp: (-data(tp), tp))
        batches = [_Batch() for _ in range(max(1, -(-total // most_data)))]
    for tp in order:
        one = sizes[tp], data(tp)
        # Without a bound on data only the newest batch is asked: one pass, and partitions stay together.
        asked = batches[-1:] if most_data is None else sorted(batches, key=lambda b: b.data)
        batch = next((b for b in asked if b.takes(one, room, most_data, most_moves)), None)
        if batch is None:
            batch = _Batch()
            batches.append(batch)
        batch.add(tp, *one)
    return [{tp: targets[tp] for tp in sorted(b.partitions)} for b in batches if b.partitions]


class _Batch:
    def __init__(self) -> None:
        self.partitions: list[TopicPartition] = []
        self.size = self.data = 0

    def takes(self, one: tuple[int, int], room: int, most_data: int | None, most_moves: int | None) -> bool:
        if not self.partitions:
            return True
        return (
            self.size + one[0] <= room
            and (most_data is None or self.data + one[1] <= most_data)
            and (most_moves is None or len(self.partitions) < most_moves)
        )

    def add(self, tp: TopicPartition, size: int, data: int) -> None:
        self.partitions.append(tp)
        self.size += size
        self.data += data
