"""Measure kctl against memcpy, a plain Python decoder and Kafka's own dump tool; print ratios of one run.

Beside each figure stands the one of RESULTS.md, and whether the new one is worse by more than a twentieth.

    python -m benchmarks.run                        # everything, into benchmarks/RESULTS.md
    python -m benchmarks.run --part crc --shape none-100x100 --shape lz4-10x100 --size 16M

Without Java and Maven the comparisons with Kafka are left out, and said so.
"""

import argparse
import datetime
from collections.abc import Callable, Iterator

from benchmarks import compare, growth, remote, small, state_log, tier
from benchmarks.corpus import SHAPES, bytes_of, shape_of
from benchmarks.kafka_jars import CACHE, VERSION, jars
from benchmarks.measure import machine, memcpy_rate
from benchmarks.parts import PARTS, Line, Setting
from benchmarks.results import landed, shown, table, write_section


def part_state_log(setting: Setting) -> Iterator[Line]:
    """State-change logs: merging, parsing and timelines against `sort -m` and Kafka's merger."""
    for one in state_log.run(setting.folder, min(setting.size, MOST_LOGS), setting.kafka):
        sign = "at most" if one.is_most else "at least"
        goal = "" if one.goal is None else f"{sign} {one.goal:g}"
        yield Line(one.what, f"{one.measured:.2f} {one.text}".strip(), goal, one.reached)


def part_remote(setting: Setting) -> Iterator[Line]:
    """Remote log metadata: printing and folding against Kafka's own tools."""
    for text in remote.measure(REMOTE_RECORDS):
        yield Line(text, "")


def part_compare(setting: Setting) -> Iterator[Line]:
    """Replicas compared against verifying the same bytes."""
    for one in compare.run(setting.folder, setting.large):
        sign = "at most" if one.is_most else "at least"
        yield Line(one.what, f"{one.measured:.2f} {one.text}".strip(), f"{sign} {one.goal:.3g}", one.reached)


def part_tier(setting: Setting) -> Iterator[Line]:
    """An audit of a tier by the number of its objects, which are listed and not read."""
    for text in tier.lines():
        yield Line(text, "")


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
}


def main() -> None:
    """Run the parts that were asked for."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument(
        "--part", action="append", choices=EVERY_PART, help="only this part; may be repeated"
    )
    arguments.add_argument(
        "--shape", action="append", type=shape_of, help="only this shape, as zstd-100x1000"
    )
    arguments.add_argument("--size", type=bytes_of, default=bytes_of("256M"), help="of each file")
    arguments.add_argument("--large", type=bytes_of, default=bytes_of("1G"), help="of the large files")
    arguments.add_argument("--write", action="store_true", help="write RESULTS.md also after some parts only")
    arguments.add_argument("--note", default="", help="a sentence about this run, for RESULTS.md")
    given = arguments.parse_args()
    kafka = jars()
    setting = Setting(CACHE / "corpus", given.size, given.shape or SHAPES, kafka, given.large)
    setting.folder.mkdir(parents=True, exist_ok=True)
    compared = f"Kafka {VERSION}" if kafka else "no Java or Maven here: nothing is compared with Kafka"
    head = f"{machine()}; memcpy {memcpy_rate() / 1e9:.1f} GB/s on one core; {compared}."
    print(head)
    today = datetime.datetime.now(datetime.UTC).date()
    how = f"Measured {today} by `make bench`, files of {given.size >> 20} MiB, on {head} {given.note}".strip()
    for name in given.part or EVERY_PART:
        lines = []
        title = (EVERY_PART[name].__doc__ or "").strip()
        print(f"\n{name}: {title}")
        for line in EVERY_PART[name](setting):
            lines.append(line)
            print(shown(line, landed(name)), flush=True)
        if given.write or not (given.part or given.shape):
            rates = "CPU seconds, each tool's start-up taken off; rates are a CPU second's."
            write_section(name, f"{title}\n\n{how} {rates}\n\n{table(lines)}")


if __name__ == "__main__":
    main()
