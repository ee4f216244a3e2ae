"""What an audit of a tier costs by the number of its objects: a listing made up on the way, objects not read.

    python -m benchmarks.tier                       # 10 thousand, 100 thousand and 1 million objects

The store answers requests for folders as an object store does, through `pyarrow.fs`, and counts how many are in
flight. A segment has five objects; half of the partitions have a log on a broker.
"""

import argparse
import gc
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyarrow import fs

from benchmarks.kafka_jars import CACHE
from benchmarks.measure import machine
from benchmarks.parts import Line, at_most
from benchmarks.remote import make_metadata_log
from benchmarks.results import shown
from kctl.evidence.discover import discover
from kctl.tier.audit.audit import AuditOptions, audit_tier
from kctl.tier.stores import REQUESTS_IN_FLIGHT, ArrowStore

SIZES = (10_000, 100_000, 1_000_000)
SUFFIXES = (".log", ".index", ".timeindex", ".leader_epoch_checkpoint", ".snapshot")


class Listing(fs.FileSystemHandler):  # type: ignore[misc]  # pyarrow has no types
    """Folders of a tier in the layout of LocalTieredStorage, each object with its size."""

    def __init__(self, folders: dict[str, list[tuple[str, int]]]) -> None:
        self.folders = folders
        self.lock = threading.Lock()
        self.in_flight = self.most = self.requests = 0

    def get_file_info_selector(self, selector: Any) -> list[Any]:
        """What one request gives."""
        with self.lock:
            self.requests += 1
            self.in_flight += 1
            self.most = max(self.most, self.in_flight)
        path = selector.base_dir.strip("/")
        if path == "tier":
            found = [fs.FileInfo(f"tier/{name}", fs.FileType.Directory) for name in self.folders]
        else:
            held = self.folders[path.partition("/")[2]]
            found = [fs.FileInfo(f"{path}/{name}", fs.FileType.File, size=size) for name, size in held]
        with self.lock:
            self.in_flight -= 1
        return found

    def _not_asked_for(self, *arguments: Any) -> Any:
        # pyarrow wants every method; a listing asks for the one above alone.
        raise NotImplementedError

    get_type_name = normalize_path = get_file_info = create_dir = delete_dir = delete_dir_contents = (
        _not_asked_for
    )
    delete_root_dir_contents = delete_file = move = copy_file = open_input_stream = open_input_file = (
        _not_asked_for
    )
    open_output_stream = open_append_stream = _not_asked_for


def store_of(listing: Listing) -> ArrowStore:
    """The store over a listing."""
    store = ArrowStore.__new__(ArrowStore)
    store.name, store.files, store.root, store.is_flat = "made up", fs.PyFileSystem(listing), "tier", False
    return store


def make(folder: Path, segments: int) -> tuple[Path, Listing]:
    """The evidence of a tier with so many segments, and the listing that fits it."""
    from kctl.tier.metadata.fold import folded
    from kctl.tier.metadata.sources import open_sources

    log = make_metadata_log(folder, 2 * segments, live=segments + 1)
    evidence = log.parent
    folders: dict[str, list[tuple[str, int]]] = {}
    for one in folded(open_sources([str(evidence)], print).chunks, print).segments():
        where = one.metadata.topic_id_partition
        name = f"{one.metadata.start_offset:020d}-{one.metadata.remote_log_segment_id}"
        held = folders.setdefault(f"{where.topic}-{where.partition}-{where.topic_id}", [])
        held += [
            (name + suffix, one.metadata.size_in_bytes if suffix == ".log" else 100) for suffix in SUFFIXES
        ]
    (evidence / "meta.properties").write_text("version=0\nbroker.id=1\n")
    for name in sorted(folders)[::2]:
        local = evidence / name[: -len("-" + "A" * 22)]
        if not local.exists():
            local.mkdir()
            start = int(folders[name][-1][0][:20]) + 1000
            (local / f"{start:020d}.log").write_bytes(b"")
            (local / "leader-epoch-checkpoint").write_text("0\n1\n3 0\n")
    return evidence, Listing(folders)


def measure(folder: Path = CACHE / "corpus") -> Iterator[tuple[int, float, Listing, dict[str, int]]]:
    """Objects, CPU seconds, the listing that was asked, and how many findings of each code there were."""
    for objects in SIZES:
        path, listing = make(folder, objects // len(SUFFIXES))
        gc.collect()
        began = time.process_time()
        codes: dict[str, int] = {}
        last: dict[str, object] = {}
        _, rows = audit_tier(discover([str(path)]), store_of(listing), AuditOptions(content=False))
        for row in rows:
            if not isinstance(row, dict):  # a judgement
                continue
            last = row
            if row["kind"] == "finding":
                codes[str(row["code"])] = codes.get(str(row["code"]), 0) + 1
        assert last["objects"] == objects, last
        yield objects, time.process_time() - began, listing, codes


def lines() -> Iterator[Line]:
    """A line a size, then how time grows."""
    each = []
    for objects, cpu, listing, codes in measure():
        each.append(cpu / objects)
        what, found = f"audit of {objects:,} objects", ", ".join(f"{n:,} {code}" for code, n in codes.items())
        yield Line(f"{what}, µs of CPU each", f"{cpu / objects * 1e6:.1f} ({cpu:.2f} s; findings: {found})")
        text = f"of {listing.requests:,} in all"
        yield at_most(f"{what}, requests in flight", listing.most, REQUESTS_IN_FLIGHT, "", text)
    yield at_most("1 million objects: times the cost of one among 100 thousand", each[-1] / each[-2], 1.5)


def main() -> None:
    """Measure and print."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter).parse_args()
    print(machine())
    for line in lines():
        print(shown(line), flush=True)


if __name__ == "__main__":
    main()
