"""Folders that a broker put aside are evidence of the topic that they are of: by its id, else by what they begin with."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.conftest import Ran, rows
from tests.kctl.replica.test_compare import FRONT, TOPIC_IDS, batch, encoded, log_dir
from tests.kctl.replica.test_loss import spans, znodes
from tests.kctl.replica.test_unflushed import DECIDED, DOWN, NEW, OFFLINE, ONLINE

UNIQUE = "b4665c45c0fa4fb0ba0108689b4ac4e0"


def put_aside(
    root: Path, broker_id: int, kind: str, batches: list[bytes], topic_id: str | None = None
) -> Path:
    """A folder of `orders-0` that a broker has put aside."""
    folder = root / f"broker-{broker_id}" / "data" / f"orders-0.{UNIQUE}-{kind}"
    folder.mkdir()
    (folder / f"{0:020d}.log").write_bytes(b"".join(batches))
    if topic_id is not None:
        (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
    return folder


def judged(root: Path) -> tuple[Ran, str]:
    ran = rows("replica", "loss", root)
    (judgement,) = ran.of("judgement")
    return ran, judgement["verdict"]


OTHER = [batch(0, 5, "old"), batch(5, 9, "old")]


@pytest.mark.parametrize(
    ("kind", "batches", "verdict", "status"),
    [
        ("stray", OTHER, "could_not_judge", 3),
        ("stray", [], "sound", 0),
        ("delete", OTHER, "sound", 0),  # somebody deleted that topic
    ],
)
@pytest.mark.parametrize("topic_id", [TOPIC_IDS[1], None])
def test_records_of_another_topic_that_nobody_is_known_to_have_deleted(
    kind: str, batches: list[bytes], verdict: str, status: int, topic_id: str | None, tmp_path: Path
) -> None:
    for broker_id in (1, 2):
        log_dir(tmp_path, broker_id, FRONT, epochs=[[0, 0]], topic_id=TOPIC_IDS[0])
    znodes(tmp_path, 1, 0, [1, 2])
    put_aside(tmp_path, 2, kind, batches, topic_id)
    ran, said = judged(tmp_path)
    assert (said, ran.status) == (verdict, status)
    assert ran.codes("info") == (["replica-stray-records"] if status else [])
    if status:
        (finding,) = ran.of("finding")
        assert "holds 9 records" in finding["message"]
        (missing,) = ran.of("judgement")[0]["missing"]
        assert finding["file"].endswith(missing["get"].split()[2].partition("/")[2])


@pytest.mark.parametrize("kind", ["stray", "delete"])
@pytest.mark.parametrize("topic_id", [TOPIC_IDS[0], None])
def test_a_folder_aside_of_the_same_topic_is_a_copy_of_it(
    kind: str, topic_id: str | None, tmp_path: Path
) -> None:
    """Broker 3 led in epoch 1 and is no replica any more; what it had, the leader of epoch 2 lacks."""
    log_dir(tmp_path, 1, [*FRONT, batch(15, 17, "b", 2)], epochs=[[0, 0], [2, 15]], topic_id=TOPIC_IDS[0])
    log_dir(tmp_path, 2, [*FRONT, batch(15, 17, "b", 2)], epochs=[[0, 0], [2, 15]], topic_id=TOPIC_IDS[0])
    log_dir(tmp_path, 3, [])
    (tmp_path / "broker-3" / "data" / "orders-0" / f"{0:020d}.log").unlink()
    os.rmdir(tmp_path / "broker-3" / "data" / "orders-0")
    znodes(tmp_path, 1, 2, [1, 2])
    put_aside(tmp_path, 3, kind, [*FRONT, batch(15, 20, "a", 1)], topic_id)
    ran, said = judged(tmp_path)
    assert spans(ran) == [(15, 20, "unknown")]
    (loss,) = ran.of("loss")
    assert loss["recoverable_from"] == [{"moment": None, "broker_id": 3}]
    assert loss["topic_id"] == TOPIC_IDS[0]
    assert said == "could_not_judge"


def test_a_partition_of_which_only_a_stray_folder_is_left_is_not_passed_over(tmp_path: Path) -> None:
    log_dir(tmp_path, 1, FRONT)
    (tmp_path / "broker-1" / "data" / "orders-0").rename(
        tmp_path / "broker-1" / "data" / f"lost-0.{UNIQUE}-stray"
    )
    ran, said = judged(tmp_path)
    assert (said, ran.status) == ("could_not_judge", 3)
    assert ran.of("judgement")[0]["topic"] == "lost"


def test_losses_say_which_topic_of_the_name_lost_them(tmp_path: Path) -> None:
    """The topic was made anew; of the second one an election was unclean. Only its znode has its id."""
    log_dir(tmp_path, 1, [*FRONT, batch(15, 17, "a", 1)], high_watermark=17, epochs=[[0, 0], [1, 15]])
    log_dir(tmp_path, 2, [*FRONT, batch(15, 16, "b", 3)], high_watermark=16, epochs=[[0, 0], [3, 15]])
    znodes(tmp_path, 2, 3, [2])
    export = tmp_path / "znodes.jsonl"
    topic = {
        "version": 3,
        "topic_id": TOPIC_IDS[1],
        "partitions": {"0": [1, 2]},
        "adding_replicas": {},
        "removing_replicas": {},
    }
    line = {"path": "/brokers/topics/orders", "data": encoded(topic), "czxid": 1, "mzxid": 1, "ctime": 0}
    export.write_text(json.dumps(line) + "\n" + "".join(export.read_text().splitlines(keepends=True)[1:]))
    lives = [
        (0, "00:10", NEW, 2, "2,1"), (1, "00:20", ONLINE, 2, "2"),
        (0, "01:10", NEW, 1, "1,2"), (1, "02:00", ONLINE, 1, "1"), (2, "04:05", DOWN, -1, "1"), (3, "04:50", OFFLINE, 2, "2"),
    ]  # fmt: skip
    lines = [
        DECIDED.format(epoch=epoch, at=at, states=states, leader=leader, isr=isr)
        for epoch, at, states, leader, isr in lives
    ]
    (tmp_path / "broker-3" / "logs").mkdir(parents=True)
    (tmp_path / "broker-3" / "logs" / "state-change.log").write_text("\n".join(lines) + "\n")
    (loss,) = rows("replica", "loss", tmp_path).of("loss")
    assert (loss["topic_id"], loss["incarnation"], loss["strength"]) == (TOPIC_IDS[1], 2, "sure")
    assert (loss["cause"], loss["lost_in_epoch"], loss["isr_before"]) == ("unclean_election", 3, [1])
    explained = rows("replica", "explain", tmp_path, "--topic", "orders", "--partition", 0, "--offset", 15)
    (lost,) = [row for row in explained.rows if row["what"] == "lost"]
    assert (lost["topic_id"], lost["strength"]) == (TOPIC_IDS[1], "sure")
