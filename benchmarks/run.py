"""Measure kctl against memcpy, a plain Python decoder and Kafka's own dump tool; print ratios of one run.

Beside each figure stands the one of RESULTS.md, and whether the new one is worse by more than a twentieth.

    python -m benchmarks.run                        # everything, into benchmarks/RESULTS.md; most of an hour
    python -m benchmarks.run --part crc --shape none-100x100 --shape lz4-10x100 --size 16M

Without Java and Maven the comparisons with Kafka are left out, and said so.
"""

import argparse
import datetime
import os
import sys
import time
from collections.abc import Callable, Iterator
from inspect import cleandoc

from benchmarks import cluster_file, collecting, compare, growth, remote, small, state_log, tier
from benchmarks.corpus import bytes_of, shape_of
from benchmarks.kafka_jars import CACHE, VERSION, jars
from benchmarks.measure import machine, memcpy_rate
from benchmarks.parts import PARTS, Line, Setting, at_least, at_most
from benchmarks.results import landed, shown, table, write_section


def line_of(one: state_log.Figure | compare.Figure) -> Line:
    """A figure as the other parts give it."""
    if one.is_most and one.goal is not None:
        return at_most(one.what, one.measured, one.goal, "", one.text)
    return at_least(one.what, one.measured, one.goal, one.text)


def part_state_log(setting: Setting) -> Iterator[Line]:
    """State-change logs: merging, parsing and timelines against `sort -m` and Kafka's merger."""
    for one in state_log.run(setting.folder, min(setting.large, MOST_LOGS), setting.kafka):
        yield line_of(one)


def part_remote(setting: Setting) -> Iterator[Line]:
    """Remote log metadata: printing and folding against Kafka's own tools."""
    yield from remote.measure(REMOTE_RECORDS)


def part_compare(setting: Setting) -> Iterator[Line]:
    """Replicas compared against verifying the same bytes."""
    for one in compare.run(setting.folder, setting.large):
        yield line_of(one)


def part_tier(setting: Setting) -> Iterator[Line]:
    """An audit of a tier by the number of its objects, which are listed and not read."""
    yield from tier.lines()


MOST_LOGS = 1 << 30
REMOTE_RECORDS = 1_000_000
EVERY_PART: dict[str, Callable[[Setting], Iterator[Line]]] = {
    **PARTS,
    "state-log": part_state_log,
    "remote": part_remote,
    "tier": part_tier,
    "compare": part_compare,
    "processes": growth.part_processes,
    "growth": growth.part_growth,
    "start-up": small.part_start_up,
    "small-logs": small.part_small_logs,
    "cluster-file": cluster_file.part_cluster_file,
    "collect": collecting.part_collect,
}


def main() -> None:
    """Run the parts that were asked for."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument(
        "--part", action="append", choices=EVERY_PART, help="only this part; may be repeated"
    )
    arguments.add_argument(
        "--shape",
        action="append",
        type=shape_of,
        help="this shape in place of each part's own, as zstd-100x1000",
    )
    arguments.add_argument("--size", type=bytes_of, default=bytes_of("256M"), help="of each file")
    arguments.add_argument("--large", type=bytes_of, default=bytes_of("1G"), help="of the large files")
    arguments.add_argument("--write", action="store_true", help="write RESULTS.md also after some parts only")
    arguments.add_argument("--note", default="", help="a sentence about this run, for RESULTS.md")
    given = arguments.parse_args()
    kafka = jars()
    setting = Setting(CACHE / "corpus", given.size, given.shape or (), kafka, given.large)
    setting.folder.mkdir(parents=True, exist_ok=True)
    compared = f"Kafka {VERSION}" if kafka else "no Java or Maven here: nothing is compared with Kafka"
    head = f"{machine()}; memcpy {memcpy_rate() / 1e9:.1f} GB/s on one core; {compared}."
    print(head)
    today = datetime.datetime.now(datetime.UTC).date()
    failed = []
    for name in given.part or EVERY_PART:
        lines, before, began = [], landed(name), time.monotonic()
        title = cleandoc(EVERY_PART[name].__doc__ or "")
        print(f"\n{name}: {title}")
        try:
            for line in EVERY_PART[name](setting):
                lines.append(line)
                print(shown(line, before), flush=True)
        except Exception as error:  # the other parts take long enough
            print(f"  {name} ended early: {error!r}")
            failed.append(name)
            continue
        load = f"load average {os.getloadavg()[1]:.1f}, its own included"
        print(f"  ({time.monotonic() - began:.0f} s; {load})")
        if given.write or not (given.part or given.shape):
            sizes = f"files of {given.size >> 20} MiB, large ones of {given.large >> 20}"
            how = f"Measured {today} by `make bench`, {sizes}, on {head} {load[0].upper()}{load[1:]}. {given.note}"
            write_section(name, f"{title}\n\n{how.strip()}\n\n{table(lines, before)}")
    if failed:
        sys.exit(f"ended early, and not written: {', '.join(failed)}")


if __name__ == "__main__":
    main()
