"""Lost records written out: what was aborted is not, what was open is marked."""

from __future__ import annotations

import json
from pathlib import Path

from formats.log.control_records import ControlType, write_marker
from formats.log.record_batch import CONTROL, TRANSACTIONAL, Record, write_batch
from tests.conftest import rows
from tests.kctl.replica.test_compare import FRONT, batch, log_dir
from tests.kctl.replica.test_loss import znodes


def written(start: int, end: int, producer: int) -> bytes:
    """A batch of a transaction."""
    return batch(
        start, end, "t", 1, attributes=TRANSACTIONAL, producer_id=producer, producer_epoch=0, base_sequence=0
    )


def ended(offset: int, producer: int, how: ControlType) -> bytes:
    """The marker at the end of one."""
    key, value = write_marker(how, 0)
    return write_batch(
        [Record(offset, 1_000, key, value)],
        partition_leader_epoch=1,
        attributes=TRANSACTIONAL | CONTROL,
        producer_id=producer,
        producer_epoch=0,
    )


def test_records_of_aborted_transactions_are_left_out(tmp_path: Path) -> None:
    lost = [
        written(15, 17, 7),
        batch(17, 18, "a", 1),
        written(18, 20, 8),
        ended(20, 7, ControlType.ABORT),
        ended(21, 8, ControlType.COMMIT),
        written(22, 24, 7),  # the producer's next one
        written(24, 25, 8),
        ended(25, 7, ControlType.COMMIT),
    ]
    evidence = tmp_path / "evidence"
    log_dir(evidence, 1, [*FRONT, *lost], high_watermark=26, epochs=[[0, 0], [1, 15]])
    log_dir(evidence, 2, [*FRONT, batch(15, 16, "b", 3)], high_watermark=16, epochs=[[0, 0], [3, 15]])
    znodes(evidence, 2, 3, [2], live=(2,))
    target = tmp_path / "lost"
    exported = [
        Path(row["exported"]) for row in rows("replica", "loss", evidence, "--export", target).of("loss")
    ]
    lines = [
        json.loads(line)
        for path in sorted(exported)
        for line in path.with_suffix(".jsonl").read_text().splitlines()
    ]
    assert [one["offset"] for one in lines] == [17, 18, 19, 22, 23, 24]
    assert {one["offset"]: one["transaction"] for one in lines if "transaction" in one} == {24: "open"}
    records = [row for path in exported for row in rows("segment", "dump", "--records", path).of("record")]
    assert sorted(row["offset"] for row in records) == [17, 18, 19, 22, 23, 24]
