"""Evidence that lacks something: what was not examined is never called sound. A case a question and a gap."""

from __future__ import annotations

import ast
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import HERE, recording, rows

pytestmark = pytest.mark.slow  # audits of whole recordings by the dozen

ZONES = "incidents/zones-2.8"  # healthy, ZooKeeper, three brokers, topic flights
KRAFT = "drills/eligible-4.3-kraft"
TIER = "tier/g2-seeded-leader"
SEGMENTS = "segments/2.8.2"
Gap = Callable[[Path], object]


def removed(*patterns: str) -> Gap:
    """Without what these patterns name."""

    def remove(root: Path) -> None:
        paths = [path for pattern in patterns for path in root.glob(pattern)]
        assert paths, patterns
        for path in paths:
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    return remove


def cut(pattern: str) -> Gap:
    """With the last third of a file gone."""

    def truncate(root: Path) -> None:
        path = next(iter(sorted(root.glob(pattern))))
        os.truncate(path, path.stat().st_size * 2 // 3)

    return truncate


def cut_each(pattern: str) -> Gap:
    """With the last two thirds of files gone."""

    def truncate(root: Path) -> None:
        paths = sorted(root.glob(pattern))
        assert paths, pattern
        for path in paths:
            os.truncate(path, path.stat().st_size // 3)

    return truncate


def no_file(pattern: str, *, every: bool = False) -> Gap:
    """With a pipe in place of a file, or of every such file, which nobody can read."""

    def replace(root: Path) -> None:
        paths = sorted(root.glob(pattern))
        assert paths, pattern
        for path in paths if every else paths[:1]:
            path.unlink()
            os.mkfifo(path)

    return replace


def emptied(pattern: str) -> Gap:
    """With folders that hold nothing."""

    def empty(root: Path) -> None:
        for path in root.glob(pattern):
            shutil.rmtree(path)
            path.mkdir()

    return empty


def whole(root: Path) -> None:
    """With everything."""


AFTER = "moments/after"
COPY = "moments/*/broker-"
METADATA = "moments/**/__cluster_metadata-0"
METADATA_LOGS = "moments/**/__cluster_metadata-0/*.log"
REMOTE_LOGS = "brokers/*/data/__remote_log_metadata-*/*.log"
FIRST_LOG = f"{AFTER}/broker-1/**/flights-0/*.log"


def cut_without_znodes(root: Path) -> None:
    """Nothing tells that the broker ran while its copy was made."""
    cut(FIRST_LOG)(root)
    removed(f"{AFTER}/znodes.jsonl")(root)


def nothing(root: Path) -> None:
    """Nothing of Kafka's in the folder."""
    shutil.rmtree(root / AFTER)
    (root / AFTER).mkdir()


COMPARE, LOSS, EPOCHS = "replica compare", "replica loss", "epoch compare"
TIMELINE, VERIFY, TIERED = "state-log timeline", "segment verify", "remote audit"
HANGING, AUDIT = "transactions hanging", "audit run"
# What lacks, recording, what of it is given, the gap, the command, its status, verdicts and how many got each.
CASES: list[tuple[str, str, str, Gap, str, int, dict[str, int]]] = [
    ("nothing", ZONES, "", whole, COMPARE, 0, {"sound": 6}),
    ("nothing", ZONES, "", whole, LOSS, 0, {"sound": 3}),
    ("nothing", ZONES, "", whole, TIMELINE, 0, {"sound": 3}),
    ("nothing", ZONES, "", whole, EPOCHS, 0, {"sound": 3}),
    ("nothing", ZONES, AFTER, whole, VERIFY, 0, {"sound": 12}),
    ("nothing", TIER, "", whole, TIERED, 0, {"sound": 2}),
    ("nothing", SEGMENTS, "data-clean", whole, HANGING, 0, {"sound": 32}),
    ("two copies", ZONES, "", removed(COPY + "2", COPY + "3"), COMPARE, 3, {"could_not_judge": 6}),
    ("two copies", ZONES, "", removed(COPY + "2", COPY + "3"), LOSS, 5, {"could_not_judge": 3}),
    ("two copies", ZONES, "", removed(COPY + "2", COPY + "3"), EPOCHS, 3, {"could_not_judge": 3}),
    ("a copy and the logs", ZONES, "", removed(COPY + "3", "broker-*/logs"), LOSS, 5, {"could_not_judge": 3}),
    ("a broker's folder", ZONES, AFTER, emptied(f"{AFTER}/broker-3"), LOSS, 5, {"could_not_judge": 3}),
    ("the controller's logs", ZONES, "", removed("broker-2/logs", "broker-3/logs"), LOSS, 3, {"sound": 2, "could_not_judge": 1}),
    ("the copies", ZONES, "", removed(COPY + "*/**/flights-*"), LOSS + " --topic flights", 3, {"could_not_judge": 3}),
    ("the copies", ZONES, "", removed(COPY + "*/**/flights-*"), COMPARE + " --topic flights", 3, {"could_not_judge": 3}),
    ("all but znodes", ZONES, "", removed(COPY + "*", "broker-*"), LOSS, 3, {"could_not_judge": 3}),
    ("all but znodes", ZONES, "", removed(COPY + "*", "broker-*"), COMPARE, 3, {}),
    ("the controller's logs", ZONES, "", removed("broker-2/logs"), TIMELINE, 3, {"sound": 2, "could_not_judge": 1}),
    ("controller and state-change logs", ZONES, "", removed("*/logs/controller.log", "*/logs/state-change.log"),
     TIMELINE, 3, {}),
    ("all but one broker", ZONES, f"{AFTER}/broker-1", whole, VERIFY, 0, {"sound": 4}),
    ("all but one broker", ZONES, f"{AFTER}/broker-1", whole, COMPARE, 3, {"could_not_judge": 3}),
    ("all but one broker", ZONES, f"{AFTER}/broker-1", whole, LOSS, 3, {"could_not_judge": 3}),
    ("all but one broker", ZONES, f"{AFTER}/broker-1", whole, EPOCHS, 3, {"could_not_judge": 3}),
    ("all but one broker", ZONES, f"{AFTER}/broker-1", whole, AUDIT, 3, {"sound": 4, "could_not_judge": 6}),
    ("a path", ZONES, f"{AFTER}/broker-1 {AFTER}/broker-2 none", whole, VERIFY, 3, {"sound": 8, "unreadable": 1}),
    ("a path", ZONES, f"{AFTER}/broker-1 {AFTER}/broker-2 none", whole, LOSS, 3, {"could_not_judge": 3}),
    ("everything", ZONES, AFTER, nothing, VERIFY, 3, {"could_not_judge": 1}),
    ("a broker's folder", ZONES, AFTER, emptied(f"{AFTER}/broker-3"), VERIFY, 3, {"sound": 8, "could_not_judge": 1}),
    ("everything", ZONES, AFTER, nothing, COMPARE, 3, {}),
    ("everything", ZONES, AFTER, nothing, LOSS, 3, {}),
    ("everything", ZONES, AFTER, nothing, EPOCHS, 3, {}),
    ("everything", ZONES, AFTER, nothing, TIMELINE, 3, {}),
    ("the end of a log", ZONES, AFTER, cut_without_znodes, VERIFY, 5, {"sound": 11, "damaged": 1}),
    ("the end of a log", ZONES, AFTER, cut_without_znodes, COMPARE, 5, {"sound": 2, "could_not_judge": 1}),
    ("a log that can be read", ZONES, AFTER, no_file(FIRST_LOG), VERIFY, 5, {"sound": 11, "damaged": 1}),
    ("a log that can be read", ZONES, AFTER, no_file(FIRST_LOG), COMPARE, 5, {"sound": 2, "unreadable": 1}),
    ("a log that can be read", ZONES, AFTER, no_file(FIRST_LOG), LOSS, 5, {"sound": 2, "unreadable": 1}),
    ("a log that can be read", ZONES, AFTER, no_file(FIRST_LOG), EPOCHS, 3, {"sound": 2, "unreadable": 1}),
    ("a name", ZONES, "", whole, COMPARE + " --topic flihgts", 2, {}),
    ("a name", ZONES, "", whole, LOSS + " --topic flihgts", 2, {}),
    ("a name", ZONES, "", whole, EPOCHS + " --topic flihgts", 2, {}),
    ("a name", ZONES, "", whole, TIMELINE + " --topic flihgts", 2, {}),
    ("all but metadata and a copy", KRAFT, "", removed(METADATA, "*/logs", COPY + "2", COPY + "3"), COMPARE, 3,
     {"could_not_judge": 8}),
    ("all but metadata and a copy", KRAFT, "", removed(METADATA, "*/logs", COPY + "2", COPY + "3"), LOSS, 5,
     {"could_not_judge": 2}),
    ("nothing", "segments/3.9.1-kraft", "", whole, COMPARE, 0, {"sound": 30}),
    ("the voters", "segments/3.9.1-kraft", "", removed("**/quorum-state"), COMPARE, 3, {"sound": 29, "could_not_judge": 1}),
    ("all but one broker", KRAFT, f"{AFTER}/broker-1", whole, COMPARE, 3, {"could_not_judge": 3}),
    ("all but one broker", KRAFT, f"{AFTER}/broker-1", whole, LOSS, 5, {"could_not_judge": 2}),
    ("metadata", TIER, "tier", whole, TIERED, 3, {"could_not_judge": 2}),
    ("metadata", TIER, "tier", whole, AUDIT, 3, {"could_not_judge": 2}),
    ("metadata", TIER, "", removed("brokers/*/data/__remote_log_metadata-*"), TIERED, 3, {"could_not_judge": 2}),
    ("objects", TIER, "brokers", whole, TIERED, 3, {"could_not_judge": 2}),
    ("objects", TIER, "brokers tier", emptied("tier"), TIERED, 3, {"could_not_judge": 2}),
    ("coordinators", SEGMENTS, "data-clean", removed("data-clean/**/__transaction_state-*"), HANGING, 3,
     {"sound": 29, "could_not_judge": 1}),
    ("coordinators", SEGMENTS, "data-clean", removed("data-clean/**/__transaction_state-*"),
     AUDIT + " --questions transactions", 3, {"sound": 29, "could_not_judge": 1}),
    ("znodes", ZONES, "", removed("moments/*/znodes.jsonl"), COMPARE, 0, {"sound": 6}),  # copies decide
    ("znodes", ZONES, "", removed("moments/*/znodes.jsonl"), LOSS, 0, {"sound": 3}),  # logs tell the ISR
    ("the brokers' logs", ZONES, "", removed("broker-*/logs"), LOSS, 0, {"sound": 3}),  # znodes do
    ("the end of a follower's log", ZONES, AFTER, cut_without_znodes, LOSS, 0, {"sound": 3}),
    ("the end of a log", ZONES, AFTER, cut_without_znodes, AUDIT, 5, {"sound": 16, "damaged": 1, "could_not_judge": 1}),
    ("every copy", ZONES, "", removed("moments"), TIMELINE, 0, {"sound": 3}),  # logs decide
    ("a controller's log that can be read", ZONES, "", no_file("broker-2/logs/controller.log"), TIMELINE, 5, {"sound": 3}),
    ("a broker's logs", ZONES, "", emptied("broker-2/logs"), TIMELINE, 3, {"sound": 2, "could_not_judge": 1}),
    ("all but one broker", ZONES, "broker-1", whole, TIMELINE, 3, {"sound": 2, "could_not_judge": 1}),
    ("metadata and logs", KRAFT, "", removed(METADATA, "*/logs"), TIMELINE, 3, {}),
    ("metadata", KRAFT, "", removed(METADATA), LOSS, 5, {"sound": 1, "could_not_judge": 1}),
    ("all but one broker", KRAFT, f"{AFTER}/broker-1", whole, EPOCHS, 3, {"could_not_judge": 3}),
    ("all but one broker", KRAFT, f"{AFTER}/broker-1", whole, VERIFY, 0, {"sound": 4}),
    *(("all but the tier", TIER, "tier", whole, command, 3, {})
      for command in (COMPARE, LOSS, EPOCHS, VERIFY, TIMELINE, HANGING)),
    *(("everything", ZONES, AFTER, nothing, command, 3, {}) for command in (HANGING, AUDIT, TIERED)),
    ("an object that can be read", TIER, "", no_file("tier/**/*.log"), TIERED, 5, {"sound": 1, "damaged": 2}),
    ("the end of an object", TIER, "", cut("tier/**/*.log"), TIERED, 5, {"sound": 1, "damaged": 1}),
    ("all but one broker", TIER, "brokers/1 tier", whole, TIERED, 3, {"could_not_judge": 2}),
    ("a log that can be read", ZONES, AFTER, no_file(FIRST_LOG), AUDIT, 5, {"sound": 15, "damaged": 1, "unreadable": 2}),
    ("a broker's folder", ZONES, AFTER, emptied(f"{AFTER}/broker-3"), AUDIT, 5, {"sound": 11, "could_not_judge": 4}),
    ("two copies", ZONES, "", removed(COPY + "2", COPY + "3"), AUDIT, 5, {"sound": 11, "could_not_judge": 9}),
    ("a path", ZONES, f"{AFTER}/broker-1 none", whole, AUDIT, 3, {"sound": 4, "unreadable": 1, "could_not_judge": 6}),
    ("a coordinator's log", SEGMENTS, "data-clean", no_file("data-clean/**/__transaction_state-*/*.log"), HANGING, 5,
     {"sound": 31, "unreadable": 1}),
    ("the end of a segment of a coordinator's log", SEGMENTS, "data-clean",
     cut("data-clean/**/__transaction_state-0/*.log"), HANGING, 3, {"sound": 31, "unreadable": 1}),
    ("the end of a coordinator's log", SEGMENTS, "data-clean", cut("data-clean/**/__transaction_state-0/*61.log"), HANGING,
     3, {"sound": 31, "could_not_judge": 1}),
    ("the end of a log", SEGMENTS, "data-clean", cut("data-clean/**/txn-mix-1/*.log"), HANGING, 3,
     {"sound": 31, "could_not_judge": 1}),
    ("the end of a log", SEGMENTS, "data-clean", cut("data-clean/**/txn-mix-1/*.log"), AUDIT + " --questions transactions",
     3, {"sound": 31, "could_not_judge": 1}),
    *(("a broker's name", ZONES, AFTER, whole, f"{command} --broker 1=/nowhere", 3, verdicts) for command, verdicts in (
        (VERIFY, {"sound": 12, "unreadable": 1}), (COMPARE, {"sound": 3}), (EPOCHS, {"sound": 3}),
        (LOSS, {"sound": 3}), (AUDIT, {"sound": 18, "unreadable": 1}),
    )),
    ("a broker's name", TIER, "", whole, TIERED + " --broker 1=/nowhere", 3, {"sound": 2}),
    ("a broker's name", SEGMENTS, "data-clean", whole, HANGING + " --broker 1=/nowhere", 3, {"sound": 32}),
    ("the tier's name", TIER, "", whole, TIERED + " --tier /nowhere", 3, {}),
    ("a path", TIER, "none", whole, TIERED, 3, {}),
    ("a path", SEGMENTS, "none", whole, HANGING, 3, {}),
    ("a path", SEGMENTS, "data-clean none", whole, HANGING, 3, {"sound": 32}),
    ("a path", ZONES, "none", whole, AUDIT, 3, {}),
    ("a question's name", ZONES, "", whole, AUDIT + " --questions integrtiy", 2, {}),
    ("a key's name", ZONES, AFTER, whole, VERIFY + " --where topci=flights", 2, {}),
    ("a partition", ZONES, "", whole, COMPARE + " --partition 99", 2, {}),
    ("a partition", ZONES, "", whole, LOSS + " --partition 99", 2, {}),
    ("a partition", ZONES, "", whole, EPOCHS + " --topic flights-99", 2, {}),
    ("a broker", ZONES, "", whole, TIMELINE + " --broker 99", 2, {}),
    ("the brokers' logs", ZONES, "", removed("broker-*/logs"), VERIFY, 0, {"sound": 24}),  # the files decide
    ("the brokers' logs", ZONES, "", removed("broker-*/logs"), COMPARE, 0, {"sound": 6}),  # copies decide
    ("the brokers' logs", ZONES, "", removed("broker-*/logs"), EPOCHS, 0, {"sound": 3}),
    ("the brokers' logs", TIER, "", removed("brokers/*/logs"), TIERED, 0, {"sound": 2}),
    ("znodes", ZONES, "", removed("moments/*/znodes.jsonl"), EPOCHS, 0, {"sound": 3}),
    ("znodes", ZONES, "", removed("moments/*/znodes.jsonl"), TIMELINE, 0, {"sound": 3}),  # logs decide
    ("znodes", TIER, "", removed("znodes.jsonl"), TIERED, 0, {"sound": 2}),  # the tier's metadata decide
    ("znodes that can be read", ZONES, "", no_file("moments/*/znodes.jsonl", every=True), COMPARE, 5, {"sound": 6}),
    ("znodes that can be read", ZONES, "", no_file("moments/*/znodes.jsonl", every=True), LOSS, 5, {"sound": 3}),
    ("a broker's folder", ZONES, AFTER, emptied(f"{AFTER}/broker-3"), COMPARE, 0, {"sound": 3}),  # two copies are left
    ("a broker's folder", SEGMENTS, "data-clean", emptied("data-clean"), HANGING, 3, {}),
    ("the end of a log", ZONES, AFTER, cut_without_znodes, EPOCHS, 0, {"sound": 3}),  # its epochs are there
    ("the end of the brokers' logs", ZONES, "", cut_each("broker-*/logs/*.log"), TIMELINE, 3,
     {"sound": 2, "could_not_judge": 1}),
    ("the end of the brokers' logs", ZONES, "", cut_each("broker-*/logs/*.log"), AUDIT + " --questions leadership", 3,
     {"sound": 2, "could_not_judge": 1}),
    ("logs of brokers that can be read", ZONES, "", no_file("broker-*/logs/*.log", every=True), TIMELINE, 5, {}),
    ("the end of metadata", TIER, "", cut_each(REMOTE_LOGS), TIERED, 3, {"could_not_judge": 2}),
    ("metadata that can be read", TIER, "", no_file(REMOTE_LOGS, every=True), TIERED, 5,
     {"unreadable": 50, "could_not_judge": 2}),
    ("metadata", KRAFT, "", removed(METADATA), VERIFY, 0, {"sound": 40}),
    ("metadata", KRAFT, "", removed(METADATA), TIMELINE, 5, {"sound": 2}),  # the logs of 4.3 tell of each election
    ("metadata that can be read", KRAFT, AFTER, no_file(METADATA_LOGS, every=True), LOSS, 3, {"could_not_judge": 2}),
    ("metadata that can be read", KRAFT, AFTER, no_file(METADATA_LOGS, every=True), TIMELINE, 5, {}),
    ("metadata that can be read", KRAFT, AFTER, no_file(METADATA_LOGS, every=True), COMPARE, 5,
     {"sound": 2, "unreadable": 1}),
    ("metadata that can be read", KRAFT, AFTER, no_file(METADATA_LOGS, every=True), AUDIT, 5,
     {"sound": 12, "damaged": 4, "unreadable": 1, "could_not_judge": 4}),
    ("the brokers' logs", KRAFT, "", removed("*/logs"), TIMELINE, 0, {"sound": 2}),  # the metadata log decides
    ("all but one broker", KRAFT, "broker-1", whole, TIMELINE, 5, {"could_not_judge": 2}),
    ("all but one broker", KRAFT, f"{AFTER}/broker-1", whole, AUDIT, 5, {"sound": 6, "could_not_judge": 5}),
    ("two copies", KRAFT, "", removed(COPY + "2", COPY + "3"), AUDIT, 5, {"sound": 30, "could_not_judge": 10}),
    ("nothing", "segments/3.9.1-kraft", "", whole, HANGING, 0, {"sound": 30}),
    ("coordinators", "segments/3.9.1-kraft", "", removed("**/__transaction_state-*"), HANGING, 0, {"sound": 28}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "given", "gap", "command", "status", "verdicts"),
    [case[1:] for case in CASES],
    ids=[f"{case[4]} without {case[0]}, {case[1]}" for case in CASES],
)
def test_what_lacks_is_not_called_sound(
    name: str, given: str, gap: Gap, command: str, status: int, verdicts: dict[str, int], tmp_path: Path
) -> None:
    root = tmp_path / "evidence"
    shutil.copytree(recording(name), root, symlinks=True)
    for answers in ("expected", "tools", "truth"):
        shutil.rmtree(root / answers, ignore_errors=True)
    gap(root)
    out = ("--out", tmp_path / "report") if command.startswith(AUDIT) else ()
    ran = rows(*command.split(), *(root / path for path in given.split() or ["."]), *out)
    assert ran.status == status, ran.err
    assert Counter(row["verdict"] for row in ran.of("judgement")) == verdicts
    for row in ran.of("judgement"):
        assert row["verdict"] != "could_not_judge" or row["missing"]
    for row in ran.of("coverage"):
        assert (
            sum(row[verdict] for verdict in ("unreadable", "could_not_judge")) or row["judged"] or status != 0
        )


GREEN = re.compile(r"\b(sound|nothing (?:is |was )?(?:lost|wrong))\b", re.IGNORECASE)


@pytest.mark.parametrize("folder", ["commands", "kctl/audit", "kctl/report"])
def test_green_words_are_composed_in_one_place(folder: str) -> None:
    """Texts for people; docstrings describe code, and the status line of a command's help says what 0 means."""
    found = []
    for path in sorted((HERE.parent / folder).rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        docs = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        found += [
            f"{path.name}:{node.lineno}: {node.value}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docs
            and GREEN.search(node.value)
            and not node.value.startswith(("0 ", "Exit status: "))
        ]
    assert found == []
