"""Indexes, snapshots and epochs made anew from recorded logs, against what the brokers wrote."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from formats.log.record_batch import Record, write_batch
from formats.log_dir.index_files import TIME_ENTRY_SIZE, used_size
from formats.log_dir.producer_snapshot import ProducerEntry, write_snapshot
from kctl.errors import KctlError
from kctl.log.index_rules import IndexRules, Interval, interval_of, likeliest_interval
from kctl.rebuilding.folders import RebuildOptions, rebuild
from kctl.rebuilding.snapshot_order import snapshot_order
from tests.conftest import recording, rows, unchanged
from tests.kctl.checks.broken import CLEAN, copy_of, cut, flip, segment


def rebuilt(*args: object) -> tuple[int, list[dict[str, object]]]:
    ran = rows("segment", "rebuild", *args)
    return ran.status, ran.of("rebuilt")


# The generation of each recording's brokers, and what a check must say of its cleanly closed directory.
GENERATIONS = {
    "segments/0.8.2.2": ("data-clean/broker-5", "0.8"),
    "segments/0.9.0.1": ("data-clean/broker-0", "0.8"),
    "segments/0.10.1.1": ("data-clean/broker-3", "0.8"),
    "segments/0.11.0.3": ("data-clean/broker-2", "0.8"),
    "segments/1.1.1": ("data-clean/broker-1/logdir-0", "0.8"),
    "segments/2.4.1": ("data-clean/broker-7/logdir-0", "2.0"),
    "segments/2.8.2": ("data-clean/broker-11/logdir-0", "2.0"),
    "segments/3.9.1": ("data-clean/broker-0/logdir-0", "3.8"),
    "segments/3.9.1-kraft": ("data-clean/broker-1/logdir-0", "3.8"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", GENERATIONS)
def test_what_brokers_closed_cleanly_is_equal_or_equivalent(name: str) -> None:
    place, rules = GENERATIONS[name]
    with unchanged(recording(name) / place) as folder:
        status, found = rebuilt(folder, "--check")
    assert status == 0
    verdicts = Counter(row["verdict"] for row in found)
    assert verdicts["different"] == 0
    assert verdicts["equal"] > 0.75 * len(found), verdicts
    indexes = [row for row in found if row["type"] in ("index", "timeindex")]
    assert sum(row["verdict"] == "equal" for row in indexes) > 0.8 * len(indexes)
    # Old rules must never be beaten by newer ones where both were tried.
    assert {str(row["rules"]) for row in found} >= {rules} or rules == "2.0"


def test_indexes_of_a_leader_are_byte_for_byte_those_of_its_generation(tmp_path: Path) -> None:
    for name, folder in (("segments/1.1.1", "logdir-0"), ("segments/2.8.2", "logdir-0")):
        broker = next((recording(name) / "data-clean").iterdir())
        source = broker / folder / "rolled-segs-0"
        rules = GENERATIONS[name][1]
        out = tmp_path / name.replace("/", "-")
        status, _ = rebuilt(source, "--to", out, "--rules", rules)
        assert status == 0
        for path in sorted((out / "rolled-segs-0").glob("*.*index")):
            assert path.read_bytes() == (source / path.name).read_bytes(), path.name


def test_the_rules_differ_where_kafka_did() -> None:
    folder = recording("segments/2.8.2") / "data-clean/broker-11/logdir-0/txn-mix-0"
    verdicts = {
        rules: {r["type"]: r["verdict"] for r in rebuilt(folder, "--check", "--rules", rules)[1]}
        for rules in ("0.8", "2.0", "3.8")
    }
    assert verdicts["2.0"]["index"] == verdicts["3.8"]["index"] == "equal"
    assert verdicts["0.8"]["index"] == "equivalent"


def test_a_damaged_index_is_different(tmp_path: Path) -> None:
    folder = copy_of(CLEAN, tmp_path) / "rolled-segs-0"
    flip(folder / segment(72, ".index"), 19)
    status, found = rebuilt(folder, "--check")
    assert status == 5
    (wrong,) = [row for row in found if row["verdict"] == "different"]
    assert wrong["file"] == f"rolled-segs-0/{segment(72, '.index')}"
    assert wrong["differences"] == 1


def test_a_missing_index_is_different_and_a_missing_snapshot_is_not(tmp_path: Path) -> None:
    folder = copy_of(CLEAN, tmp_path) / "rolled-segs-0"
    (folder / segment(72, ".snapshot")).unlink()
    assert rebuilt(folder, "--check")[0] == 0
    (folder / segment(72, ".index")).unlink()
    assert rebuilt(folder, "--check")[0] == 5


def test_what_was_written_makes_a_broken_folder_whole(tmp_path: Path) -> None:
    folder = copy_of(CLEAN, tmp_path)
    for suffix in (".index", ".timeindex", ".txnindex"):
        cut(folder / "txn-mix-0" / segment(0, suffix), 7)
    (folder / "txn-mix-0" / "leader-epoch-checkpoint").write_text("0\n1\n9 9\n")
    assert rows("segment", "verify", folder / "txn-mix-0").status == 5
    assert rebuilt(folder / "txn-mix-0", "--to", tmp_path / "out")[0] == 0
    for path in (tmp_path / "out" / "txn-mix-0").iterdir():
        shutil.copy(path, folder / "txn-mix-0" / path.name)
    assert not rows("segment", "verify", folder).codes("error", "warning")


def test_untrimmed_files_are_equal_up_to_their_zeros() -> None:
    folder = recording("segments/2.8.2") / "data-killed/broker-11/logdir-0/rolled-segs-0"
    last = folder / segment(204, ".timeindex")
    assert used_size(last.read_bytes(), TIME_ENTRY_SIZE) < last.stat().st_size
    status, found = rebuilt(folder, "--check")
    assert status == 0
    assert {row["verdict"] for row in found if row["type"] in ("index", "timeindex")} == {"equal"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["delete", "stray", "future"])
def test_folders_that_are_not_live_are_read_as_verify_reads_them(kind: str, tmp_path: Path) -> None:
    folder = copy_of(CLEAN, tmp_path)
    other = (folder / "rolled-segs-0").rename(folder / f"rolled-segs-0.{'a' * 32}-{kind}")
    for given in (folder, other):
        status, found = rebuilt(given, "--check")
        files = [row for row in found if str(row["file"]).startswith(f"{other.name}/")]
        assert (status, {row["verdict"] for row in files} - {"equivalent"}) == (0, {"equal"})
    (other / segment(72, ".index")).unlink()
    # A broker that deletes a folder may have begun.
    assert (
        rebuilt(other, "--check")[0]
        == rows("segment", "verify", other).status
        == (5 if kind == "future" else 0)
    )


def test_what_a_cleaner_left_is_read_as_verify_reads_it(tmp_path: Path) -> None:
    """A snapshot of producers that are gone is none of another log where the topic was compacted."""
    folder = tmp_path / "t-0"
    folder.mkdir()
    (folder / segment(0)).write_bytes(write_batch([Record(0, 5, None, b"v")]))
    (folder / segment(1)).write_bytes(write_batch([Record(1, 5, None, b"v")]))
    snapshot_of_7 = write_snapshot([ProducerEntry(7, 0, 0, 0, 0, 5, -1, -1)])
    (folder / segment(1, ".snapshot")).write_bytes(snapshot_of_7)
    for base in (0, 1):
        (folder / segment(base, ".index")).write_bytes(b"")
        (folder / segment(base, ".timeindex")).write_bytes(b"")
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    for entries, verdict in (("0\n0\n", "different"), ("0\n1\nt 0 1\n", "equivalent")):
        (tmp_path / "cleaner-offset-checkpoint").write_text(entries)
        for given in (folder, tmp_path):
            _, found = rebuilt(given, "--check")
            (row,) = [row for row in found if str(row["file"]).endswith(segment(1, ".snapshot"))]
            assert row["verdict"] == verdict


def test_nothing_is_written_into_the_evidence(tmp_path: Path) -> None:
    folder = copy_of(CLEAN, tmp_path)
    with unchanged(folder):
        assert rebuilt(folder / "rolled-segs-0", "--to", folder)[0] == 4
        assert rebuilt(folder / "rolled-segs-0", "--to", folder / "rolled-segs-0" / "x")[0] == 4
        (tmp_path / "link").symlink_to(folder)
        assert rebuilt(folder / "rolled-segs-0", "--to", tmp_path / "link")[0] == 4
    assert rebuilt(folder / "rolled-segs-0", "--to", tmp_path / "out")[0] == 0
    (tmp_path / "out" / "rolled-segs-0" / segment(0, ".index")).write_bytes(b"")
    with unchanged(folder):
        assert rebuilt(folder / "rolled-segs-0", "--to", tmp_path / "out")[0] == 0
    assert (tmp_path / "out" / "rolled-segs-0" / segment(0, ".index")).stat().st_size
    shutil.rmtree(tmp_path / "out" / "rolled-segs-0")
    (tmp_path / "out" / "rolled-segs-0").symlink_to(folder / "rolled-segs-0")
    with unchanged(folder):
        assert rebuilt(folder / "rolled-segs-0", "--to", tmp_path / "out")[0] == 4


def test_wrong_arguments(tmp_path: Path) -> None:
    assert rebuilt(tmp_path)[0] == 2
    assert rebuilt(tmp_path / "nowhere", "--check")[0] == 3
    assert rebuilt(tmp_path, "--check")[0] == 3
    assert rebuilt(recording("incidents/unclean-2.8"), "--check")[0] == 3


def test_an_interval_is_told_by_an_index() -> None:
    assert interval_of([0, 100, 200, 300, 400], [200, 400]) == Interval(100, 200)
    assert interval_of([0, 100, 200, 300], [100, 300]) is None
    assert interval_of([0, 100], [50]) is None
    assert likeliest_interval([]) == 4096
    assert likeliest_interval([Interval(0, 1 << 20)]) == 4096
    assert likeliest_interval([Interval(100, 200), Interval(150, 180), Interval(0, 120)]) in range(100, 180)


@pytest.mark.parametrize(
    ("rules", "ids"),
    [
        (IndexRules.V0_8, [1001, 1000, 0]),
        (IndexRules.V2_0, [2000, 4000, 1000, 3000, 1001]),
        (IndexRules.V3_8, [0, 2000, 4000, 10000, 12000, 2001, 5000, 7000]),
    ],
)
def test_producers_stand_in_the_order_of_recorded_snapshots(rules: IndexRules, ids: list[int]) -> None:
    assert snapshot_order(sorted(ids), lambda number: number, rules) == ids


def test_an_unreadable_log_is_an_error_of_one_line(tmp_path: Path) -> None:
    from kctl.checks.report import ReplicaTask
    from kctl.findings import Place

    with pytest.raises(KctlError, match="no such file"):
        list(rebuild(ReplicaTask(tmp_path / "gone-0", Place()), RebuildOptions(is_check=True)))
