"""Small copies of what people who run Kafka reported: each gets the answer that the report ended with.

`first` and `second` hold a folder a report; a fault in one stands for its whole kind.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import Ran, kctl, recording, rows

FIRST, SECOND = "field/first", "field/second"
pytestmark = pytest.mark.slow


def audit(tmp_path: Path, case: str) -> Ran:
    place, _, name = case.partition(":")
    return rows("audit", "run", recording(f"field/{place}") / name, "--out", tmp_path / "report")


# The audit's status, the findings in it with what their sentences say, and what no sentence says.
AUDITS: dict[str, tuple[int, dict[str, tuple[str, ...]], tuple[str, ...]]] = {
    "first:01-future-timestamps": (5, {"record-timestamp-in-future": ("offset 10 ", "year 58870", "`retention.ms` keeps this segment")}, ()),
    "first:04-kraft-no-partition-metadata": (5, {"kraft-no-partition-metadata": ("orders.plain-1", "YxI_UlvmScKXnihwL8KZow"), "partition-metadata-malformed": ()}, ()),
    "first:05-stray-after-lost-metadata": (5, {"stray-holds-earlier-records": ("50 records of an earlier topic of this name are in the stray folder",)}, ()),
    "first:12-voter-set-mismatch": (5, {"voter-set-differs": ("1, 2, 3 by broker-1/server.properties", "1 by broker-1/data/__cluster_metadata-0/quorum-state")}, ()),
    "first:17-duplicate-broker-ids": (5, {"broker-id-twice": ("host-a/data", "host-b/data", "not two moments of one", "Both hold __consumer_offsets-0")}, ()),
    "first:19-not-compacted": (5, {"compaction-stopped": ("had compacted profiles-0 up to offset 0", "170,990 bytes"), "thread-died": ("cleaner map full",)}, ()),
    "second:02-cleaner-dirty-offset": (3, {"cleaner-point-below-log-start": ("riders-0 is 5", "begins at 20: harmless")}, ()),
    "second:03-wsl-setlength": (5, {"broker-ended": ("cannot resize a file that is mapped", "The disk has not failed, and no data are damaged", "Move `log.dirs`"), "clean-shutdown-point-behind": ("[50, 100)", "none of them is damaged")}, ("failed disk",)),
    "second:05-offsets-expired": (3, {"group-offsets-removed": ("group gate", "they expired", "tickets-0 was at 20", "offsets reset-file gate EVIDENCE --as-of 2026-11-26T16:47:28.096Z")}, ()),
    "second:10-offsets-go-back": (5, {"batch-offsets-go-back": ("Base offset 450 comes after offset 899",), "offsets-go-back-stop-the-start": ("does not start (InvalidOffsetException)",)}, ()),
    "second:12-voter-directory": (5, {"voter-directory-gone": ("Voter 3 is directory HxljNKkhShCdRa08UFG0XA", "node 3 has 8YkMIUhNSFoaAZC35bzrUw")}, ()),
    "second:17-nfs": (5, {"log-dir-failed": ("Log directory /data/kafka of broker 1", "`.nfs...`", "The disk is sound"), "broker-ended": ("On NFS: stop the broker",)}, ("failed disk",)),
    "second:19-tmp-cleaner": (5, {"log-dir-failed": ("Something else removed the file", "The disk is sound"), "replica-start-missing": ("begin at offset 0, and its log at 61", "Of [0, 41) no file is left, of [41, 61) only indexes"), "index-orphaned": ("offsets [41, 61)",)}, ("failed disk",)),
    "second:22-disk-full": (5, {"log-dir-failed": ("The disk is full, not failed",), "broker-ended": ("disk full",)}, ("failed disk",)),
    "second:23-topic-id-mismatch": (5, {"replica-same-under-two-topic-ids": ("hold the same batches up to offset 100", "0vZb_fAyRnKmMcm_NGTVwg on broker 1", "Zz9zfAyRnKmMcm0NGTVwgA on broker 2")}, ()),
    "second:24-topic-id-of-znode": (5, {"topic-id-of-znode-differs": ("FF0hqVGRSYKquNtJ_YGuDQ in znode", "zcdgx9lCR06NL_1lwO72wA in")}, ()),
    "second:26-downgrade": (5, {"metadata-version-of-newer-software": ("metadata version 27 (4.1-IV1)", "Kafka 4.1 or later"), "broker-ended": ("does not know metadata.version 27",)}, ()),
    "second:31-zk-dir-under-kraft/before": (5, {"kraft-over-zookeeper-dir": ("`process.roles` is broker,controller",)}, ()),
    "second:31-zk-dir-under-kraft/after": (5, {"kraft-strayed-zookeeper-dir": ("Nothing is lost, all records are in these folders",)}, ()),
}  # fmt: skip


@pytest.mark.parametrize("case", AUDITS)
def test_an_audit_says_what_happened(tmp_path: Path, case: str) -> None:
    status, findings, never = AUDITS[case]
    ran = audit(tmp_path, case)
    assert ran.status == status, ran.codes()
    messages = {row["code"]: row["message"] for row in ran.of("finding")}
    for code, words in findings.items():
        assert code in messages, ran.codes()
        assert [word for word in words if word not in messages[code]] == [], messages[code]
    assert [word for word in never if any(word in message for message in messages.values())] == []


def test_a_log_behind_its_recovery_point_is_whole() -> None:
    ran = rows("segment", "verify", recording(SECOND) / "03-wsl-setlength")
    assert {row["verdict"] for row in ran.of("judgement")} == {"sound"} and ran.status == 5


def test_a_downgrade_is_forecast_by_the_log_of_the_software_that_refused() -> None:
    ran = rows("log-dir", "start", recording(SECOND) / "26-downgrade")
    (start,) = ran.of("start")
    assert (ran.status, start["starts"]) == (5, False)
    assert start["fails_with"] == "No MetadataVersion with feature level 27"


def test_nothing_is_sound_while_a_stray_folder_holds_the_records() -> None:
    ran = rows("replica", "loss", recording(FIRST) / "05-stray-after-lost-metadata")
    (judgement,) = ran.of("judgement")
    assert (judgement["verdict"], ran.status) == ("could_not_judge", 3)
    assert "a stray folder holds records of another topic of this name" in judgement["reason"]
    ran = rows("replica", "loss", recording(SECOND) / "31-zk-dir-under-kraft" / "after")
    assert [row["verdict"] for row in ran.of("judgement")] == ["could_not_judge"] * 5


@pytest.mark.parametrize("verb", ["loss", "compare"])
def test_copies_of_two_hosts_are_no_moments(verb: str) -> None:
    ran = rows("replica", verb, recording(FIRST) / "17-duplicate-broker-ids", "--topic", "payments")
    judgements = ran.of("judgement")
    assert judgements and {row["verdict"] for row in judgements} == {"could_not_judge"} and ran.status == 3
    for row in judgements:
        assert row["reason"].startswith("broker 1 is two hosts (") and "not two moments" in row["reason"]
        assert "kctl replica compare EVIDENCE --broker 1=" in row["missing"][0]["get"]


@pytest.mark.parametrize("line", ["first dirty offset", "cluster id"])
def test_a_line_that_was_pasted_is_explained(line: str) -> None:
    if line == "cluster id":
        text = (recording(FIRST) / "03-exception-lines" / "server.log").read_text().splitlines()
        pasted, says = next(row for row in text if "InconsistentClusterIdException" in row), "cluster id"
    else:
        text = (recording(SECOND) / "02-cleaner-dirty-offset/logs/log-cleaner.log").read_text().splitlines()
        pasted, says = text[0], "KAFKA-6266"
    ran = rows("state-log", "explain", pasted)
    assert ran.status == 0 and any(says in str(row).replace("Cluster ID", says) for row in ran.rows)
    assert "copied or damaged" not in str(ran.rows)


POWER_LOSS = [
    "bootstrap-empty", "epochs-empty", "epochs-meta-nul", "epochs-nul", "hw-nul", "meta-empty", "meta-nul",
    "partition-metadata-nul", "psnap-nul", "quorum-state-empty", "quorum-state-nul",
]  # fmt: skip


@pytest.mark.parametrize("case", POWER_LOSS)
def test_a_start_after_a_power_loss_is_told_as_kafka_did(case: str) -> None:
    folder = recording(FIRST) / "06-zero-length-after-power-loss" / case
    says = (folder / "kafka-says").read_text()
    ran = rows("log-dir", "start", folder, "--kafka-version", "3.9.1")
    (start,) = ran.of("start")
    assert start["starts"] is says.startswith("started")
    if not start["starts"]:
        sentence = start["fails_with"].replace(f"{folder}/broker-1/", "")
        said = sentence.partition(" in ")[0].split(":")[0]
        # The process ends with its last log directory; the file that failed it is named before.
        assert said in says or (
            "all log dirs" in said and "storage.internals.log.LogDirFailureChannel" in says
        )


@pytest.mark.parametrize(
    ("indexes", "is_clean", "code", "starts"),
    [
        (False, False, "offsets-go-back-stop-the-start", False),
        (True, False, "offsets-go-back-empty-the-segment", True),
        (False, True, "offsets-go-back-stop-the-start", False),
        (True, True, "offsets-go-back-not-read-by-a-start", True),
    ],
)
def test_offsets_that_go_back_are_judged_by_indexes_and_shutdown(
    tmp_path: Path, indexes: bool, is_clean: bool, code: str, starts: bool
) -> None:
    folder = shutil.copytree(recording(SECOND) / "10-offsets-go-back", tmp_path / "evidence")
    if indexes:
        for suffix in ("index", "timeindex"):
            (folder / "data/tolls-0" / f"{0:020}.{suffix}").touch()
    if is_clean:
        (folder / "data" / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')
    codes = rows("segment", "verify", folder).codes()
    assert [found for found in codes if found.startswith("offsets-go-back")] == [code]
    (start,) = rows("log-dir", "start", folder, "--kafka-version", "3.9.1").of("start")
    assert start["starts"] is starts


def test_a_start_over_a_directory_of_zookeeper_is_told(tmp_path: Path) -> None:
    ran = rows(
        "log-dir", "start", recording(SECOND) / "31-zk-dir-under-kraft/before", "--kafka-version", "3.9.1"
    )
    (start,) = ran.of("start")
    assert "renames all its 5 partition folders to -stray" in start["reason"] and ran.status == 5


def test_the_offsets_of_before_can_be_had() -> None:
    case = recording(SECOND) / "05-offsets-expired"
    ran = rows("offsets", "show", "gate", case)
    (finding,) = ran.of("finding")
    assert finding["code"] == "group-offsets-removed" and ran.status == 0
    (commit, tombstone) = rows("offsets", "history", "gate", case).of("committed_offset")
    assert (commit["offset"], tombstone["offset"], tombstone["timestamp"]) == (20, None, 1795711648097)
    ran = kctl("offsets", "reset-file", "gate", case, "--as-of", "2026-11-26T16:47:28.096Z")
    assert ran.out == b"tickets,0,20\n"


def test_offsets_that_the_logs_in_evidence_do_not_have(tmp_path: Path) -> None:
    """The tombstone is cut off, so that the group still has offset 20 of a log that is emptied."""
    case = shutil.copytree(recording(SECOND) / "05-offsets-expired", tmp_path / "evidence")
    offsets = case / "data/__consumer_offsets-3" / f"{0:020}.log"
    offsets.write_bytes(offsets.read_bytes()[:117])
    assert rows("offsets", "show", "gate", case).codes() == []
    log_start = case / "data/log-start-offset-checkpoint"
    log_start.write_text("0\n1\ntickets 0 27\n")
    (finding,) = rows("offsets", "show", "gate", case).of("finding")
    assert finding["message"].startswith(
        "Group gate committed offset 20 of tickets-0, and the log begins at 27: up to 7 records"
    )
    log_start.write_text("0\n0\n")
    (case / "data/replication-offset-checkpoint").write_text("0\n0\n")
    (case / "data/tickets-0" / f"{0:020}.log").write_bytes(b"")
    (finding,) = rows("offsets", "show", "gate", case).of("finding")
    assert (finding["code"], finding["severity"]) == ("group-offset-beyond-end", "info")
    assert (
        "ends at 0: 20 offsets" in finding["message"]
        and "another replica may reach further" in finding["message"]
    )
