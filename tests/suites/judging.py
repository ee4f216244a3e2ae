"""What kctl says of the folders that Kafka's tests wrote, held against Kafka's own dump and against what is valid."""

from __future__ import annotations

import traceback
from collections import Counter
from pathlib import Path

from formats.values import Struct, field
from kctl.checks.report import CheckOptions
from kctl.dump.kafka_text.log import with_line_feeds
from kctl.evidence.discover import discover
from kctl.findings import Finding, Severity
from kctl.verification.verify import verify
from tests.conftest import kctl
from tests.suites.invalid import Reason, reason_of
from tests.suites.running import Dumper, Kept

RECORDS = ("--deep-iteration", "--print-data-log")
# Flags of Kafka's tool by the suffix of the file; kctl's are the same but for these.
DUMPED: dict[str, tuple[tuple[str, ...], ...]] = {
    ".log": ((), RECORDS),
    ".checkpoint": (RECORDS,),
    ".index": ((),),
    ".timeindex": ((),),
    ".txnindex": ((),),
    ".snapshot": ((),),
}
OURS = {"--deep-iteration": "--records", "--print-data-log": "--records"}
DECODERS = {
    "__consumer_offsets": "--offsets-decoder",
    "__transaction_state": "--transaction-log-decoder",
    "__cluster_metadata": "--cluster-metadata-decoder",
}
DIGITS = 20


class Judged(Struct):
    """Counts over the folders of one version, and what is wrong."""

    folders: int = 0
    files: int = 0
    dumps: int = 0
    identical: int = 0
    thrown: int = 0  # where Kafka's tool ended with an exception, and kctl goes on behind what it had printed
    explained: Counter[Reason] = field(default_factory=Counter)  # errors on folders that are not valid
    wrong: list[str] = field(default_factory=list)

    def folder(self, kept: Kept, dumper: Dumper | None) -> None:
        """Judge one folder."""
        self.folders += 1
        try:
            self._verify(kept)
            if dumper:
                for path in sorted(path for path in kept.folder.rglob("*") if is_dumped(path)):
                    self.files += 1
                    self._dump(kept, path, dumper)
        except Exception:
            self.wrong.append(f"{kept.test}: {kept.folder}\n{traceback.format_exc()}")

    def _verify(self, kept: Kept) -> None:
        for item in verify(discover([kept.folder]), CheckOptions(), jobs=1):
            if not isinstance(item, Finding) or item.severity is not Severity.ERROR:
                continue
            reason = reason_of(kept.test, item.code)
            if reason:
                self.explained[reason] += 1
            else:
                self.wrong.append(f"{kept.test}: {item.code} {kept.folder}/{item.place.file}: {item.message}")

    def _dump(self, kept: Kept, path: Path, dumper: Dumper) -> None:
        flags = DUMPED[path.suffix]
        decoder = next((option for topic, option in DECODERS.items() if topic in path.parent.name), None)
        if decoder and path.suffix in (".log", ".checkpoint"):
            flags = (*flags, (*RECORDS, decoder))
        for used in flags:
            self.dumps += 1
            answer, printed = dumper.dump(*used, "--files", str(path))
            expected = bytes(with_line_feeds(printed))  # as kctl leaves a payload's carriage returns
            ours = dict.fromkeys(OURS.get(flag, flag) for flag in used)
            said = kctl("segment", "dump", "--format", "kafka", *ours, path).out
            if answer != "ok":
                self.thrown += 1
                expected = expected[: expected.rfind(b"\n") + 1]
                if said.startswith(expected):
                    continue
            elif said == expected:
                self.identical += 1
                continue
            self.wrong.append(
                f"{kept.test}: dump {' '.join(used)} {path}: {first_difference(said, expected)}"
            )


def is_dumped(path: Path) -> bool:
    """Whether Kafka's tool prints the file: one of a log, by its name."""
    return path.suffix in DUMPED and path.name[:DIGITS].isdecimal() and path.is_file()


def first_difference(said: bytes, expected: bytes) -> str:
    """The first line that differs, ours and Kafka's."""
    ours, theirs = said.splitlines(), expected.splitlines()
    for number, (line, other) in enumerate(zip(ours, theirs, strict=False), 1):
        if line != other:
            return f"line {number}\n    kctl  {line!r}\n    Kafka {other!r}"
    more = max(ours, theirs, key=len)[min(len(ours), len(theirs)) :]
    return f"{len(ours)} lines, Kafka {len(theirs)}: {more[:1]}"
