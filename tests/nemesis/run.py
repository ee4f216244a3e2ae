"""`make nemesis`: an incident by random faults on real brokers, made and held against what kctl says of it.

    make nemesis SEED=3 KAFKA=4.1-kraft MINUTES=2
    make nemesis SEED=5 KAFKA=3.9 NEMESIS_ARGS="--with tier"      one topic has remote segments: 3.9 and later
    make nemesis SEED=7 KAFKA=2.8 NEMESIS_ARGS="--with any"       more kinds of faults, which the seed chooses
    python -m tests.nemesis.run --seed 3 --kafka 2.8 --keep FOLDER      keep the incident; FOLDER/story.json tells it
    python -m tests.nemesis.run --judge FOLDER                          judge one that was kept

Prints a line a run; what was said wrongly follows it, and the exit status is 5.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.nemesis.judge import judge
from tests.nemesis.making import KINDS, kinds_of, make
from tests.nemesis.story import Story


def main() -> int:
    """One run, or the judgement of one that was kept."""
    parser = argparse.ArgumentParser(prog="make nemesis")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kafka", default="3.9", help="a version of the rig, such as 2.8 or 4.1-kraft")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument(
        "--with",
        dest="kinds",
        default="",
        metavar="KIND,...",
        help="faults beside those of every run; any: the seed chooses. "
        + "; ".join(f"{kind.name}: {kind.doc}" for kind in KINDS),
    )
    parser.add_argument("--keep", type=Path, help="the folder to make it in")
    parser.add_argument("--judge", type=Path, help="judge this folder, and make nothing")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kctl-nemesis-") as scratch:
        folder = options.judge or options.keep or Path(scratch) / "incident"
        if options.judge:
            story = Story.read(folder / "story.json")
        else:
            try:
                kinds = kinds_of(
                    [name for name in options.kinds.split(",") if name], options.kafka, options.seed
                )
            except ValueError as error:
                parser.error(str(error))
            folder.mkdir(parents=True)
            story = make(folder, options.seed, options.kafka, options.minutes * 60, kinds)
        statements = judge(story, folder, Path(scratch) / "audit")
    wrong = [statement for statement in statements if not statement.is_right]
    written = sorted({sent.partition.rpartition("-")[0] for sent in story.sent if sent.offset is not None})
    print(
        f"seed {story.seed}, Kafka {story.version}{' with ' * bool(story.kinds)}{' '.join(story.kinds)}, acknowledged in {' '.join(written)}:"
        f" {len(statements)} statements, {len(wrong)} wrong"
    )
    for statement in wrong:
        print(f"  {statement.text}")
    return 5 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
