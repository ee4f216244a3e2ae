"""What the engine sends of a store with its work; no Spark is started here."""

from __future__ import annotations

import shutil

from kctl.evidence.discover import discover
from kctl.model import TopicPartition
from kctl.replica.comparison.search import CompareOptions, ComparisonTask, compare, comparison_rows
from kctl.replica.copies.copy import copies_of
from kctl.spark.tasks import PLAIN, Packed, packed
from kctl.stores.mirror import local_path
from kctl.stores.sent import laid
from tests.kctl.stores.test_mirror import URL, Handler, forgotten, store

__all__ = ["forgotten", "store"]  # fixtures


def comparisons() -> list[ComparisonTask]:
    """One of each partition of the store."""
    found = copies_of(discover((local_path(URL),)))
    return [
        ComparisonTask(partition, moment, copies, (), None)
        for partition, by_moment in found.items()
        for moment, copies in by_moment.items()
    ]


def listed(sent: Packed) -> list[str]:
    return sorted(key for part in sent.mirrors for key, _, _ in part.files)


def test_a_comparison_goes_with_the_folders_that_it_reads_alone(store: Handler) -> None:
    """However many other partitions lie beside them; and it needs no more."""
    folders = sorted(store.folder.glob("broker-*/data/stock-1"))
    for folder in folders:
        for number in range(1, 20):
            shutil.copytree(folder, folder.with_name(f"other-{number}"))
    tasks = comparisons()
    assert len(tasks) >= 20 and len(folders) > 1
    (task,) = (one for one in tasks if one.partition == TopicPartition("stock", 1))
    sent = packed(0, [task])
    assert listed(sent) == sorted(
        str(path.relative_to(store.folder)) for folder in folders for path in folder.iterdir()
    )
    here = [*comparison_rows(compare(task), CompareOptions())]
    with laid(sent.mirrors):
        there = [*comparison_rows(compare(PLAIN.loads(sent.items[0])), CompareOptions())]
    assert there == here and here[-1]["verdict"] == "equal"


def test_paths_that_mean_the_same_are_listed_once(store: Handler) -> None:
    """The folder of a mirror, and folders in it."""
    root = discover((local_path(URL),)).log_dirs[0].root.path
    files = listed(packed(0, [root, root / "broker-1", root / "broker-1" / "data" / ".." / "data"]))
    assert files == sorted(
        str(path.relative_to(store.folder)) for path in store.folder.rglob("*") if path.is_file()
    )
