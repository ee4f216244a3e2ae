"""Which tests `make test` leaves to `make test-all`, and why.

`make test` holds every subject against the real thing once. A line below names tests that repeat it: with other versions,
at every step, on every recording. A test that no line names is in `make test`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from typing import NamedTuple
from zlib import crc32


class Repeated(NamedTuple):
    """Tests that `make test-all` alone runs."""

    reason: str
    tests: str
    """An expression that is found in their names, with the file's."""
    one_of: int = 0
    """One of so many of them, chosen by its name, is in `make test` all the same; 0 for none.

    Groups of the expression are the parts of the name that vary: by them each part is chosen with others as evenly.
    """


TABLE = (
    Repeated("versions of brokers", r"^tests/brokers/[^/]*::.*[\[-](?:0\.8\.2|2\.8)[\]-]"),
    Repeated("versions of brokers", r"^tests/brokers/wire/.*\[zookeeper-2\.8"),
    Repeated("versions of brokers", r"^tests/brokers/access/.*\[(?!kraft-4\.3)"),
    Repeated("versions of brokers", r"access/test_authorizer\.py::.*\[(?!4\.3)"),
    Repeated("versions of brokers", r"test_message_definitions\.py::.*\[(?:3\.9|4\.1)"),
    Repeated("users of other rights", r"wire/test_rights\.py::test_(?:what_each_user_sees\[(?!kraft-4\.3-one\])|a_user_with_exactly|what_may_be_read)"),
    Repeated("starts of brokers", r"test_starts\.py::(?!.*kraft-4\.3-(?:healthy|other-node-id|flipped-snapshot))"),
    Repeated("killed at every step", r"^tests/brokers/.*_killed_.*(?:planned|journalled|before-write|sent:|written|finished|applied|closed)"),
    Repeated("killed at every step", r"^tests/brokers/(?:wire/test_killed\.py|wire/test_disks\.py|.*_killed_at_every_step)"),
    Repeated("other changes of rules and users", r"^tests/brokers/access/.*::test_(?:delegation|rules_on|somebody|a_lockout|what_the_journal|kctl_itself)"),
    Repeated("killed at every step", r"^tests/brokers/access/test_acls\.py::test_killed"),
    Repeated("killed at every step", r"cluster_file/test_plans\.py::test_killed_and", 4),
    Repeated("other changes by files", r"access/test_cluster_file\.py::test_(?:five_hundred|brokers_refuse|of_two|what_files)"),
    Repeated("killed at every step", r"wire/test_faults\.py::test_(?:killed_|one_of_two|a_reassignment_killed)", 5),
    Repeated("killed at every step", r"^tests/stores/test_killed_audits\.py::(?!.*\[local-s3-driver\])"),
    Repeated("users with half of the rights", r"wire/halfway/test_half_allowed\.py::test_(?!the_second_batch_of_a_reassignment\[resume|offsets_of_one_of_two_topics\[reset-undo)"),
    Repeated("brokers that come back", r"wire/halfway/test_returns\.py::test_(?!a_source_that_comes_back\[kraft-4\.3-before the throttle)"),
    Repeated("ways to connect", r"^tests/brokers/wire/(?:test_security\.py|test_failures\.py::test_a_controller_that_wants)"),
    Repeated("other recoveries", r"wire/test_recover\.py::test_(?!lost_records_are_seen_once\[kraft-4\.3)"),
    Repeated("other tools' output", r"^tests/brokers/wire/test_compared\.py"),
    Repeated("runbooks on clusters", r"^tests/brokers/(?:test_runbooks|wire/test_tutorial|test_migration)\.py"),
    Repeated("copies under load", r"^tests/brokers/test_collect\.py"),
    Repeated("clusters of Spark", r"^tests/spark/test_(?:cluster|audit_of_a_store|elsewhere)\.py"),
    Repeated("clusters of Spark", r"^tests/spark/test_audit_on_spark\.py::.*\[", 4),
    Repeated("recordings", r"test_audit_reads\.py::test_what_the_scan_saw_of_every_recording", 8),
    Repeated("recordings", r"test_audit_slices\.py::test_(?:recordings|damaged_recordings|damage_on_and_beside_a_border)", 8),
    Repeated("recordings", r"test_digests_of_every_recording"),
    Repeated("recordings", r"test_parallel\.py::test_(?:recordings|damaged_recordings)", 4),
    Repeated("bounds of memory", r"test_bounded_memory\.py::", 4),
    Repeated("bounds of memory", r"test_audit_output\.py::test_what_many_findings_take"),
    Repeated("killed at every step", r"test_audit_output\.py::test_(?:an_audit_of_a_folder_that_lost|a_part_that_is_not|what_does_not_fit)", 4),
    Repeated("hostile files", r"test_hostile_evidence\.py::test_(?:folders|files)\[([^-]+)-(.*)\]", 4),
)  # fmt: skip
COMPILED = [(row, re.compile(row.tests)) for row in TABLE]


def repeated(name: str) -> str | None:
    """Why a test is left to `make test-all`; None for one of `make test`."""
    for row, tests in COMPILED:
        if match := tests.search(name):
            chosen = sum(crc32(part.encode()) for part in match.groups() or (name,))
            return None if row.one_of and chosen % row.one_of == 0 else row.reason
    return None


# Markers that `make test-quick` leaves out, and `make test` does not.
LEFT_BY_QUICK = ("brokers", "spark", "java", "slow")
LEVELS = ("make test", "make test-all", "make test-matrix")


def left_to(markers: Collection[str], repeats: str | None) -> tuple[str, str]:
    """The level that a test which was left out is in, and why it is not in an earlier one; "" where it is in all."""
    if "matrix" in markers:
        return "make test-matrix", "every version"
    if repeats:
        return "make test-all", repeats
    return "make test", next((name for name in LEFT_BY_QUICK if name in markers), "")


def what_levels_add(left: Counter[tuple[str, str]]) -> list[str]:
    """A line for each level that holds tests which this run left out.

    Where a run leaves out what is in all levels, `make test-all` has had `make test` run before.
    """
    lines = []
    for level in LEVELS:
        reasons = Counter({reason: count for (of, reason), count in left.items() if of == level})
        if reasons and "" not in reasons:
            listed = ", ".join(f"{reason} {count:,}" for reason, count in reasons.most_common())
            lines.append(f"{reasons.total():,} tests more in `{level}`: {listed}")
    return lines
