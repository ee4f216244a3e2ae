"""`make suites`: Kafka's own storage tests as evidence, so that a new version is tried before its users try it.

    make suites                                              3.9.1, 2.8.2 and 4.3.0; half an hour on two cores
    make suites SUITES_ARGS="--kafka 3.9 --only LogCleaner"  one version, classes with this in their name
    python -m tests.suites.run --keep FOLDER                 keep the folders, in FOLDER/VERSION
    python -m tests.suites.run --judge FOLDER/VERSION        judge what was kept

Every folder that a test deletes is copied first. kctl then verifies each and dumps each file as Kafka 3.9's own tool
does. The exit status is 5 if kctl fails on one, finds an error in one that is valid (`invalid.py` lists the others), or
prints another line than Kafka.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.brokers.jars import SUITES
from tests.suites.invalid import TABLE, Reason
from tests.suites.judging import Judged
from tests.suites.running import Dumper, classes_of, kept, run_classes

TOOL = "3.9"  # whose text `segment dump --format kafka` is


def main() -> int:
    """Run and judge the suites of some versions."""
    parser = argparse.ArgumentParser(prog="make suites")
    parser.add_argument("--kafka", nargs="+", default=list(SUITES), choices=list(SUITES))
    parser.add_argument("--only", default="", metavar="TEXT", help="classes with this in their name")
    parser.add_argument("--keep", type=Path, help="the folder to keep what the tests wrote in")
    parser.add_argument("--judge", type=Path, nargs="+", help="judge these folders, and run no test")
    parser.add_argument(
        "--seconds", type=int, default=3600, help="the longest that a version's tests may take"
    )
    options = parser.parse_args()
    used: Counter[Reason] = Counter()
    is_wrong = False
    with tempfile.TemporaryDirectory(prefix="kctl-suites-") as scratch:
        for name in options.judge or options.kafka:
            if options.judge:
                folder = name
            else:
                folder = (options.keep or Path(scratch)) / name
                folder.mkdir(parents=True)
                classes = [class_ for class_ in classes_of(name) if options.only in class_]
                tests = run_classes(name, classes, folder, options.seconds)
                ended = ", ".join(f"{count} {word}" for word, count in sorted(tests.items()))
                print(f"Kafka {name}: {len(classes)} classes, tests: {ended}", flush=True)
            judged = judge(folder, Path(scratch))
            used += judged.explained
            if not judged.folders:
                judged.wrong.append(f"no test left a folder: see {folder}/tests.log")
            is_wrong |= bool(judged.wrong)
            print(
                f"{name}: {judged.folders} folders, {judged.files} files in {judged.dumps} dumps:"
                f" {judged.identical} identical, {judged.thrown} that end in an exception of Kafka's tool;"
                f" {judged.explained.total()} errors on folders that are not valid, {len(judged.wrong)} wrong",
                flush=True,
            )
            for text in judged.wrong:
                print(f"  {text}")
    if not options.only and not options.judge and set(options.kafka) == set(SUITES):
        unused = [row for row in TABLE if row not in used]
        for row in unused:
            print(f"no test needs the row of {row.tests}: {row.reason}")
        is_wrong |= bool(unused)
    return 5 if is_wrong else 0


def judge(folder: Path, scratch: Path) -> Judged:
    """Judge every folder that was kept."""
    judged = Judged()
    dumper = Dumper(TOOL, scratch)
    try:
        for each in kept(folder):
            judged.folder(each, dumper)
    finally:
        dumper.close()
    return judged


if __name__ == "__main__":
    sys.exit(main())
