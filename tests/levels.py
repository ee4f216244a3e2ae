"""Which tests `make test` leaves to `make test-all`, which `make test-quick` leaves to `make test`, and why.

`make test` holds every subject against the real thing once. A line of `TABLE` names tests that repeat it: with other
versions, at every step, on every recording. A test that no line names is in `make test`. Of those in `TABLE`, a line of
`NIGHTLY` names what `make test-all` leaves to `make test-matrix`, which runs at night. `QUICK` names likewise what
repeats a subject of `make test-quick`: of each line some are left in it, and all are in `make test`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple
from zlib import crc32


class Repeated(NamedTuple):
    """Tests that repeat a subject of the level before, and are not in it."""

    reason: str
    tests: str
    """An expression that is found in their names, with the file's."""
    one_of: int = 0
    """One of so many of them, chosen by its name, is in the level before all the same; 0 for none.

    Groups of the expression are the parts of the name that vary: by them each part is chosen with others as evenly.
    """


NIGHTLY = (
    Repeated("every version", r"test_(?:starts|rights_to_change)\.py::.*\[(?!kraft-4\.3)"),
    Repeated("every version", r"test_starts\.py::.*\[kraft-4\.3-(?!healthy|other-node-id)", 5),
    Repeated("every version", r"^tests/brokers/(?:wire|access)/.*(?:_killed_|killed_at|halfway/test_returns).*[\[-](?:0\.8\.2|1\.1|2\.8)[\]-]"),
    Repeated("every version", r"^tests/brokers/[^/]*::.*[\[-](?:0\.8\.2|1\.1|2\.8)[\]-]", 2),
    Repeated("every version", r"wire/(?:test_disks\.py::|test_recover\.py::.*zookeeper|test_rights\.py::test_a_user_with_exactly)", 2),
    Repeated("every version", r"^tests/spark/test_(?:cluster|elsewhere)\.py::", 2),
    Repeated("every version", r"test_log_dir_start_as_kafka\.py::", 2),
    Repeated("every version", r"access/test_cluster_file\.py::test_five_hundred"),
    Repeated("every version", r"^tests/spark/test_(?:own_check|session)\.py::test_a(?:_check_speaks|n_audit_in_a_session)"),
    Repeated("every step", r"wire/test_recover\.py::test_recovery_killed\w*\[.*-[23]\]"),
    Repeated("every step", r"access/test_cluster_file\.py::test_an_apply_killed_at_every_step\["),
    Repeated("every user", r"test_rights_to_change\.py::", 4),
    Repeated("every broker", r"wire/halfway/test_returns\.py::|test_elections\.py::test_what_is_predicted", 3),
    Repeated("every step", r"test_migration\.py::test_killed|access/test_cluster_file\.py::test_killed_at_a_stage|access/test_a_day\.py::test_a_day_killed|wire/test_killed\.py::", 2),
    Repeated("every copy", r"test_collect(?:_headers)?\.py::test_(?:an_audit_of_the_copy|a_copy_of_brokers|what_brokers_under|every_answer)\w*\[", 2),
    Repeated("every recording", r"test_audit_(?:reads|slices|output)\.py::test_(?:what_the_scan|recordings|damaged_recordings|damage_on|every_table)\w*\[|test_(?:parallel|together)\.py::test_(?:recordings|damaged_recordings|recorded_logs)\w*\[", 2),
    Repeated("every recording", r"(?:test_no_reassurance|findings/test_evidence|checks/test_damage|test_replica_truth|test_hostile_evidence|test_corpus|test_bounded_memory|test_extreme_numbers)\.py::.*\[", 2),
)  # fmt: skip
TABLE = (
    Repeated("versions of brokers", r"^tests/brokers/[^/]*::.*[\[-](?:0\.8\.2|1\.1|2\.8)[\]-]"),
    Repeated("versions of brokers", r"^tests/brokers/wire/.*\[zookeeper-2\.8"),
    Repeated("versions of brokers", r"^tests/brokers/access/.*\[(?!kraft-4\.3)"),
    Repeated("versions of brokers", r"access/test_authorizer\.py::.*\[(?!4\.3)"),
    Repeated("versions of brokers", r"test_message_definitions\.py::.*\[(?:3\.9|4\.1)"),
    Repeated("users of other rights", r"wire/test_rights\.py::test_(?:what_each_user_sees\[(?!kraft-4\.3-one\])|a_user_with_exactly|what_may_be_read)|wire/test_rights_to_change\.py"),
    Repeated("starts of brokers", r"test_starts\.py::(?!.*kraft-4\.3-(?:healthy|other-node-id))"),
    Repeated("killed at every step", r"^tests/brokers/.*_killed_.*(?:planned|journalled|before-write|sent:|written|finished|applied|closed)"),
    Repeated("killed at every step", r"^tests/brokers/(?:wire/test_killed\.py|wire/test_disks\.py|.*_killed_at_every_step)"),
    Repeated("other changes of rules and users", r"^tests/brokers/access/.*::test_(?:a_token_for_somebody|rules_on|somebody|a_lockout|what_the_journal|kctl_itself)"),
    Repeated("other changes of rules and users", r"access/test_(?:a_day|quota_levels)\.py::"),
    Repeated("runbooks on clusters", r"access/test_access_runbooks\.py::"),
    Repeated("killed at every step", r"^tests/brokers/access/test_acls\.py::test_killed"),
    Repeated("killed at every step", r"cluster_file/test_plans\.py::test_killed_and", 4),
    Repeated("killed at every step", r"access/test_cluster_file\.py::test_killed_at_a_stage\[(?!kraft-4\.3-after-write-revocations-undo)"),
    Repeated("other changes by files", r"access/test_cluster_file\.py::test_(?:five_hundred|brokers_refuse|of_two|what_files)"),
    Repeated("killed at every step", r"wire/test_faults\.py::test_(?:killed_|one_of_two|a_reassignment_killed)", 5),
    Repeated("killed at every step", r"^tests/stores/test_killed_audits\.py::(?!.*\[local-s3-driver\])"),
    Repeated("users of other rights", r"wire/(?:test_authorization|halfway/test_half_allowed)\.py::"),
    Repeated("brokers that die or come back", r"wire/halfway/test_returns\.py::"),
    Repeated("brokers that die or come back", r"^tests/brokers/(?!test_elections).*::test_.*(?:_dead_|_dies_|_died|_restarts?_|_restarted_|is_dead|_is_dead|lost_quorum|lost_controller|failed_disk|without_its_quorum)"),
    Repeated("ways to connect", r"^tests/brokers/wire/(?:test_security\.py|test_failures\.py::test_a_controller_that_wants)"),
    Repeated("other recoveries", r"wire/test_recover\.py::test_(?!lost_records_are_seen_once\[kraft-4\.3)"),
    Repeated("other tools' output", r"^tests/brokers/wire/test_compared\.py"),
    Repeated("runbooks on clusters", r"^tests/brokers/(?:test_runbooks|wire/test_tutorial|test_migration)\.py"),
    Repeated("copies under load", r"^tests/brokers/test_collect\.py"),
    Repeated("parts of evidence", r"test_partial_evidence\.py::", 6),
    Repeated("clusters of Spark", r"^tests/spark/test_(?:cluster|audit_of_a_store|elsewhere)\.py"),
    Repeated("clusters of Spark", r"^tests/spark/test_audit_on_spark\.py::(?:.*\[|test_a_partition_that_is_cut|test_folders_with_many|test_files_lie)", 6),
    Repeated("recordings", r"test_audit_reads\.py::test_what_the_scan_saw_of_every_recording", 40),
    Repeated("recordings", r"test_audit_slices\.py::test_(?:recordings|damaged_recordings|damage_on_and_beside_a_border|files_of_slices|a_log_that_changes)", 24),
    Repeated("recordings", r"test_digests_of_every_recording"),
    Repeated("recordings", r"test_parallel\.py::test_(?:recordings|damaged_recordings)", 12),
    Repeated("recordings", r"test_together\.py::test_recorded_logs\w*\[", 6),
    Repeated("versions of brokers", r"test_log_dir_start_as_kafka\.py::.*\[(?!4\.3(?:\]|-(?!rolled)))"),
    Repeated("clusters of Spark", r"^tests/spark/test_(?:own_check|session)\.py::test_a(?:_check_speaks|n_audit_in_a_session)"),
    Repeated("clusters of Spark", r"^tests/spark/test_(?:audit_on_spark\.py::test_both_demos|bad_input\.py::test_an_executor_without|docs\.py::test_the_program)"),
    Repeated("clusters of Spark", r"^tests/spark/test_(?:bad_input\.py::test_a_secret|data_source\.py::test_(?:no_cut|what_is_refused|pushed)).*\[", 4),
    Repeated("recordings", r"test_collect\.py::test_an_audit_of_the_copy_says_what_one_of_the_source_says\[", 32),
    Repeated("recordings", r"test_collect_headers\.py::test_every_answer_but_contents\w*\[", 6),
    Repeated("recordings", r"test_no_reassurance\.py::test_what_lacks_is_not_called_sound\[", 16),
    Repeated("recordings", r"findings/test_evidence\.py::test_recorded_incidents\[", 16),
    Repeated("recordings", r"checks/test_damage\.py::test_damage_is_found\[", 6),
    Repeated("recordings", r"test_replica_truth\.py::test_(?:loss_is_what_was_lost|ordinary_life|every_moment)[^\[]*\[", 3),
    Repeated("questions of the page", r"test_audit_sql\.py::test_a_question_is_answered\[", 12),
    Repeated("bounds of memory", r"test_leaving\.py::test_long_(?:json|text)_is_escaped_in_bounded_memory\[", 4),
    Repeated("bounds of memory", r"report/test_scale\.py::|test_segment_dump\.py::test_(?:memory_does|a_checkpoint_of_a_million)"),
    Repeated("random runs", r"test_replica_simulate\.py::test_(?:random_faults|a_power_failure)[^\[]*\[", 3),
    Repeated("killed at every step", r"test_audit_output\.py::test_an_audit_of_a_folder_that_lost"),
    Repeated("recordings", r"test_audit_reads\.py::test_(?:digests_of_damaged|what_the_scan_saw_compares).*\[", 4),
    Repeated("bounds of memory", r"test_bounded_text\.py::test_no_(?:toml|yaml|json)[^\[]*\[", 4),
    Repeated("questions of the page", r"docs/test_tables\.py::test_(?:polars|pandas)[^\[]*\[", 3),
    Repeated("random runs", r"test_small_logs\.py::test_(?:damaged_indexes|what_is_found)\w*\[|dump/test_json_lines\.py::test_both_ways\w*\[", 4),
    Repeated("recordings", r"test_together\.py::test_what_headers\w*\[|test_drills\.py::test_what_was_lost\w*\[", 3),
    Repeated("random runs", r"test_log_dir_start_as_kafka\.py::test_forecast_of_random_damage"),
    Repeated("ways to read a store", r"test_mirror\.py::test_an_audit_of_s3_is_that_of_a_folder\[", 3),
    Repeated("random runs", r"^tests/spark/test_scale\.py::test_(?:the_page|a_million)"),
    Repeated("bounds of memory", r"test_bounded_memory\.py::", 16),
    Repeated("bounds of memory", r"test_audit_output\.py::test_what_many_findings_take"),
    Repeated("killed at every step", r"test_audit_output\.py::test_(?:a_part_that_is_not|what_does_not_fit)", 8),
    Repeated("hostile files", r"test_hostile_evidence\.py::test_(?:folders|files)\[([^-]+)-(.*)\]", 4),
    Repeated("hostile files", r"test_hostile_evidence\.py::test_an_audit_of_it\[", 4),
    Repeated("hostile files", r"fuzz/test_corpus\.py::test_(?:a_sound_file_holds|what_was_found_once)\[", 3),
    Repeated("hostile files", r"test_(?:extreme_numbers|bounded_text)\.py::test_(?:every_command_reads|nothing_takes_more)[^\[]*\[", 3),
    Repeated("recordings", r"test_dump_like_kafka\.py::test_the_text_is_that_of_the_recorded_run\[", 3),
    Repeated("recordings", r"dump/test_json_lines\.py::test_recorded_logs\[", 3),
    Repeated("recordings", r"test_segment_dump\.py::test_recorded_files_are_read\w*\[", 3),
    Repeated("recordings", r"test_timeline\.py::test_(?:leaders_epochs_and|unclean_elections_are|what_is_drawn_from|every_announced)\w*\[", 6),
    Repeated("recordings", r"test_clock_offsets\.py::test_(?:a_timeline_is_the_same|brokers_of_one_zone|losses_are_the_same|a_clock_that_is_off)\w*\[", 6),
    Repeated("recordings", r"test_log_brokers\.py::test_each_line_is_of_the_broker\w*\[", 3),
    Repeated("recordings", r"test_state_log\.py::test_every_record_comes_out_once\w*\[", 3),
    Repeated("recordings", r"test_audit_estimate\.py::test_files_and_bytes\w*\[", 3),
    Repeated("recordings", r"test_audit_output\.py::test_every_table_is_read\w*\[", 6),
    Repeated("recordings", r"test_remote_audit\.py::test_healthy_tiers\w*\[", 3),
    Repeated("recordings", r"test_log_dir\.py::test_recorded_brokers_start\w*\[", 3),
    Repeated("recordings", r"test_(?:carriers_of_three_brokers|log_carriers)\.py::test_lines_(?:of_three|are_found)\w*\[", 4),
    Repeated("recordings", r"test_(?:rebuild|field_reports)\.py::test_(?:what_brokers_closed|an_audit_says)\w*\[", 2),
    Repeated("questions of the page", r"^tests/spark/test_(?:sql_on_spark\.py::test_every_question|data_source\.py::test_every_table_is)\w*\[", 3),
    Repeated("killed at every step", r"wire/test_faults\.py::test_the_later_of_two\w*\[", 3),
    Repeated("ways to be silent", r"test_silent_stores\.py::test_a_command_ends_with_its_time\[", 3),
    Repeated("ways to be silent", r"test_(?:first_ready|remote_audit)\.py::test_(?:nobody_that_can_be_used|a_store_that_cannot_be_reached)\w*\[", 6),
    Repeated("ways to be silent", r"test_collect_remote\.py::test_what_may_not_be_read_there\w*\[", 3),
)  # fmt: skip
QUICK = (
    # Most of these files run commands on copies of whole incidents.
    Repeated("recordings", r"commands/test_(?:remote|state_log|internal_topics|cluster_file|clock|replica_truth|remote_audit_contents|drills|inventory|collect_headers|collect_remote|misspelt_subjects)\.py::", 3),
    Repeated("recordings", r"kctl/(?:test_(?:rebuild|timeline|quorum_clocks|clock_offsets|metadata_decisions|kraft_logs)|checks/test_(?:damage|table|properties|leaving_folders)|report/test_(?:timeline_section|lineage))\.py::", 3),
    Repeated("recordings", r"kctl/(?:evidence/test_discover|stores/test_(?:mirror|publishing)|collect/test_(?:fetched_copies|copies_as_evidence))\.py::", 3),
    Repeated("recordings", r"test_partial_evidence\.py::|test_state_log\.py::test_format_kafka", 6),
    Repeated("recordings", r"test_(?:migration\.py::test_znodes_that_nobody|loss\.py::test_(?:brokers_that_do_not_tell|leader_epochs_that|an_unclean|moments|a_tail)|log_dir\.py::test_(?:settings_of_a|the_newest))", 4),
    Repeated("recordings", r"test_(?:carriers_of_three_brokers|log_carriers)\.py::test_(?:lines_|the_time_of_a)\w*\[", 6),
    Repeated("recordings", r"test_(?:log_brokers\.py::test_each_line|line_writers\.py::test_how_a_line|broker_logs\.py::test_of_an_unknown|broker_log_templates\.py::test_what_a)\w*\[", 6),
    Repeated("recordings", r"test_dump_like_kafka\.py::test_files|dump/test_json_lines\.py::test_filters|test_segment_dump\.py::test_offset_filters", 6),
    Repeated("hostile files", r"test_hostile_evidence\.py::test_(?:statements|codecs|what_lies|damaged_tables)|test_extreme_numbers\.py::test_every_command", 4),
    Repeated("bounds of memory", r"test_(?:leaving|bounded_text|record_groups|walk)\.py::test_(?:rows_as_text|long_json|long_text|nothing_takes|what_grows|time_grows)\w*\[", 4),
    Repeated("messages of Kafka's protocol", r"wire/test_messages\.py::test_bytes_are_those_of_another_client\[", 4),
    Repeated("commands", r"test_nothing_there\.py::test_(?:nothing_where|a_topic_that_is_not)|test_secrets\.py::test_(?:client_properties|no_command)|test_questions\.py::test_each_command", 4),
    Repeated("commands", r"test_(?:start\.py::test_modules|closed_streams\.py::test_closed|frame\.py::test_colour|pager\.py::)", 3),
    Repeated("ways to connect", r"test_connection_mistakes\.py::test_a_(?:broker|zookeeper)_that|test_tls_files\.py::test_(?:mistakes|what_can)|test_logins\.py::test_refusals", 4),
    Repeated("killed at every step", r"cluster_file/test_plans\.py::test_killed_and", 3),
)  # fmt: skip


CASES = 3
"""One of so many cases of a test, from the first on, is in `make test-quick`."""


def compiled(table: tuple[Repeated, ...]) -> list[tuple[Repeated, re.Pattern[str]]]:
    return [(row, re.compile(row.tests)) for row in table]


COMPILED = compiled(TABLE)
COMPILED_QUICK = compiled(QUICK)
COMPILED_NIGHTLY = compiled(NIGHTLY)
# Starts of the sums by which tests are chosen: with one for all tables, each would choose again what another chose.
CHOICE, CHOICE_OF_QUICK, CHOICE_OF_NIGHTLY = 0, 10, 20


def repeated(name: str) -> str | None:
    """Why a test is left to `make test-all`; None for one of `make test`."""
    return _left(name, COMPILED, CHOICE)


def nightly(name: str) -> str | None:
    """Why a test that is left by `make test` is left to `make test-matrix` too; None for one of `make test-all`."""
    return _left(name, COMPILED_NIGHTLY, CHOICE_OF_NIGHTLY) if repeated(name) else None


def later(name: str, case: int = 0) -> str | None:
    """Why a test of `make test` that has no marker is left to it by `make test-quick`; None for one of both.

    `case` is its number among those of one function that are left to no later level.
    """
    return _left(name, COMPILED_QUICK, CHOICE_OF_QUICK) or ("cases of a test" if case % CASES else None)


def _left(name: str, table: list[tuple[Repeated, re.Pattern[str]]], start: int) -> str | None:
    for row, tests in table:
        if match := tests.search(name):
            chosen = sum(crc32(part.encode(), start) for part in match.groups() or (name,))
            if not row.one_of or chosen % row.one_of:
                return row.reason
    return None


# Markers that `make test-quick` leaves out, and `make test` does not; `later` is of tests that `QUICK` names.
LEFT_BY_QUICK = ("brokers", "spark", "java", "slow", "later")
LEVELS = ("make test", "make test-all", "make test-matrix")


def left_to(markers: Mapping[str, str]) -> tuple[str, str]:
    """The level that a test which was left out is in, and why it is not in an earlier one; "" where it is in all.

    Markers are with their reasons, or with their names where they have none.
    """
    if "matrix" in markers:
        reason = markers["matrix"]
        return "make test-matrix", "versions, steps and servers" if reason == "matrix" else reason
    if "repeated" in markers:
        return "make test-all", markers["repeated"]
    return "make test", next((markers[name] for name in LEFT_BY_QUICK if name in markers), "")


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
