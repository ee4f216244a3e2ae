"""The list of commands: where each lives, its short help, and the rows it prints.

`kctl --help` is written from this table alone, so that nothing else is imported; a test compares the short
help with the command's own, and `kctl schema` reads the rows. Rows are named as `MODULE.NAME` in `kctl/rows`.
"""

from typing import NamedTuple


class Verb(NamedTuple):
    """A command: `MODULE:FUNCTION` under `commands`, its first line of help, the rows it prints."""

    target: str
    help: str
    rows: tuple[str, ...] = ()


class Group(NamedTuple):
    """Commands about one subject."""

    help: str
    verbs: dict[str, Verb]


FINDING = "common.FINDING"
JUDGED = ("judging.JUDGEMENT", "judging.COVERAGE")
DUMP_ENTRIES = (
    "dump.INDEX_ENTRY",
    "dump.TIME_INDEX_ENTRY",
    "dump.TRANSACTION_ENTRY",
    "dump.PRODUCER_ENTRY",
    "dump.OFFSET_ENTRY",
    "dump.EPOCH_ENTRY",
)

CHANGE = ("changes.CHANGE", "changes.WRITE", "changes.REFUSED")

COMMANDS: dict[str, Group | Verb] = {
    "segment": Group(
        "Print, check and rebuild segments and the files beside them.",
        {
            "dump": Verb(
                "segment.dump:dump",
                "Print batches, records and entries of partition files.",
                ("dump.BATCH", "dump.RECORD", *DUMP_ENTRIES, FINDING),
            ),
            "verify": Verb(
                "segment.verify:verify",
                "Check segments and the files beside them, byte by byte.",
                (FINDING, "verify.FILE", *JUDGED, "common.SUMMARY"),
            ),
            "rebuild": Verb(
                "segment.rebuild:rebuild",
                "Rebuild indexes, producer snapshots and epochs from the log.",
                ("verify.REBUILT",),
            ),
        },
    ),
    "checkpoint": Group(
        "Print checkpoint files of a log directory.",
        {
            "show": Verb(
                "checkpoint:show",
                "Print the entries of checkpoint files.",
                ("dump.OFFSET_ENTRY", "dump.EPOCH_ENTRY"),
            )
        },
    ),
    "epoch": Group(
        "Examine leader epochs of replicas, and predict truncation.",
        {
            "show": Verb(
                "epoch:show",
                "Show the leader epochs of each replica from its checkpoint and its batches.",
                ("replica.LINEAGE", "replica.EPOCH_DIFFERENCE", FINDING),
            ),
            "end-offset": Verb(
                "epoch:end_offset",
                "Show how each replica would answer OffsetsForLeaderEpoch.",
                ("replica.END_OFFSET", "live.LEADER_END_OFFSET"),
            ),
            "truncation": Verb(
                "epoch:truncation",
                "Show to which offset each follower would truncate under a leader.",
                ("replica.TRUNCATION",),
            ),
            "compare": Verb(
                "epoch:compare",
                "Compare the leader epochs of replicas and show where they diverge.",
                ("replica.LINEAGE", "replica.DIVERGENCE", "replica.VERDICT", FINDING, *JUDGED),
            ),
        },
    ),
    "replica": Group(
        "Compare replicas, find lost records, explain offsets, simulate replication.",
        {
            "compare": Verb(
                "replica.compare:compare",
                "Compare the replicas of every partition that two or more brokers hold.",
                (
                    "replica.LINEAGE",
                    "replica.DIVERGENCE",
                    "replica.VERDICT",
                    "replica.REJOIN",
                    FINDING,
                    *JUDGED,
                ),
            ),
            "loss": Verb(
                "replica.compare:loss",
                "Find lost records: what was lost, since when and why.",
                ("replica.LOSS", FINDING, *JUDGED),
            ),
            "explain": Verb(
                "replica.compare:explain",
                "Show the history of one offset: who wrote it, where it is, why it is gone.",
                ("replica.EXPLANATION",),
            ),
            "simulate": Verb(
                "replica.simulate:simulate",
                "Simulate replication: produce, fetch, crash, restart and elect.",
                ("replica.REPLICA_STATE", "replica.SIMULATION", "replica.VIOLATION", "replica.EXPLORATION"),
            ),
            "verify": Verb(
                "replica.verify:verify",
                "Compare every replica of every partition while the cluster runs.",
                ("live.VERIFIED", "live.VERIFICATION", "replica.DIVERGENCE", FINDING),
            ),
        },
    ),
    "state-log": Group(
        "Merge broker logs, show leadership history, explain lines.",
        {
            "merge": Verb("state_log:merge", "Merge broker logs by time.", ("state_log.EVENT", FINDING)),
            "timeline": Verb(
                "state_log:timeline",
                "Show the leadership history of partitions, controllers and brokers.",
                (
                    "state_log.LEADER",
                    "state_log.CONTROLLER_TERM",
                    "state_log.QUORUM_STATE",
                    "state_log.METADATA_LOG",
                    "state_log.BROKER_STATE",
                    FINDING,
                    *JUDGED,
                ),
            ),
            "explain": Verb("state_log:explain", "Explain a line of a broker log.", ("state_log.TEMPLATE",)),
        },
    ),
    "remote": Group(
        "Examine tiered storage: metadata, objects and local logs.",
        {
            "format": Verb(
                "remote.format:remote_format",
                "Print the records of the remote log metadata topic.",
                ("remote.METADATA_RECORD", FINDING),
            ),
            "segments": Verb(
                "remote.segments:segments",
                "List remote segments by their metadata records.",
                ("remote.REMOTE_SEGMENT", "remote.REMOTE_TOTAL", FINDING),
            ),
            "lookup": Verb(
                "remote.rules:lookup",
                "Find the remote segment and objects that serve an offset.",
                ("remote.LOOKUP", FINDING),
            ),
            "plan": Verb(
                "remote.rules:plan",
                "Show the next tasks of each leader: copy, delete remote segments, delete local segments.",
                ("remote.PLAN_PARTITION", "remote.PLAN_STEP", FINDING),
            ),
            "follower": Verb(
                "remote.rules:follower",
                "Show how a new, lagging or returning follower rebuilds its state.",
                ("remote.FOLLOWER", FINDING),
            ),
            "audit": Verb(
                "remote.audit:audit",
                "Check tiered storage: metadata against objects against local logs.",
                (FINDING, "remote.TIER_PARTITION", *JUDGED, "remote.TIER_SUMMARY"),
            ),
            "partition-of": Verb(
                "remote.segments:partition_of",
                "Show which metadata partition holds the records of a partition.",
                ("remote.METADATA_PARTITION",),
            ),
        },
    ),
    "offsets": Group(
        "Read consumer groups and their offsets from segments.",
        {
            "list": Verb(
                "offsets:list_groups",
                "List the consumer groups in __consumer_offsets.",
                ("internal_topics.GROUP", FINDING),
            ),
            "show": Verb(
                "offsets:show",
                "Show the members and committed offsets of a group.",
                ("internal_topics.GROUP_MEMBER", "internal_topics.COMMITTED_OFFSET", FINDING),
            ),
            "history": Verb(
                "offsets:history",
                "Show every commit of a group that the log still holds, oldest first.",
                ("internal_topics.COMMITTED_OFFSET", FINDING),
            ),
            "reset-file": Verb(
                "offsets:reset_file",
                "Print the offsets of a group as a file for kafka-consumer-groups --from-file.",
            ),
        },
    ),
    "transactions": Group(
        "Read transactions from segments; find and abort hanging ones.",
        {
            "list": Verb(
                "transactions:list_transactions",
                "List the transactional ids that coordinators know.",
                ("internal_topics.TRANSACTION", FINDING),
            ),
            "show": Verb(
                "transactions:show",
                "Show the history of a transactional id, oldest first.",
                ("internal_topics.TRANSACTION",),
            ),
            "hanging": Verb(
                "transactions:hanging",
                "Find transactions that are open in data logs and that no coordinator will end.",
                ("internal_topics.OPEN_TRANSACTION", FINDING, *JUDGED),
            ),
            "abort": Verb("transactions:abort", "Abort a hanging transaction of a partition.", CHANGE),
        },
    ),
    "metadata": Group(
        "Read the metadata log of a KRaft cluster.",
        {
            "show": Verb(
                "metadata:show",
                "Show topics, partitions, brokers, features and configurations of a KRaft cluster.",
                (
                    "internal_topics.METADATA",
                    "internal_topics.METADATA_BROKER",
                    "internal_topics.METADATA_TOPIC",
                    "internal_topics.METADATA_PARTITION",
                    FINDING,
                ),
            )
        },
    ),
    "audit": Group(
        "Check everything in the evidence of a cluster and write a report.",
        {
            "run": Verb(
                "audit:run",
                "Check everything in the evidence and write tables and an HTML report.",
                (FINDING, "replica.LOSS", *JUDGED, "audit.AUDIT", "audit.AUDIT_ESTIMATE"),
            ),
            "report": Verb("audit:report", "Write the HTML report again from the tables of an audit."),
            "sql": Verb("audit:sql", "Query the tables of an audit with SQL.", ("audit.SQL_ROW",)),
        },
    ),
    "topic": Group(
        "List, describe, create, alter and delete topics.",
        {
            "list": Verb(
                "topic:list_topics", "List topics, including those marked for deletion.", ("cluster.TOPIC",)
            ),
            "describe": Verb(
                "topic:describe",
                "Describe topics: replicas, leaders, ISR, configuration.",
                ("cluster.TOPIC", "cluster.PARTITION"),
            ),
            "create": Verb("topic:create", "Create a topic, with replicas placed as Kafka does.", CHANGE),
            "delete": Verb("topic:delete", "Delete a topic and all its records.", CHANGE),
            "alter": Verb("topic:alter", "Add partitions to a topic.", CHANGE),
            "delete-records": Verb(
                "topic:delete_records",
                "Delete the oldest records of a topic.",
                ("live.DELETION", *CHANGE),
            ),
            "config": Verb(
                "config:topic_config",
                "Show, set or unset the configuration of a topic.",
                ("cluster.CONFIG", *CHANGE),
            ),
        },
    ),
    "config": Group(
        "Get and set configurations of topics, brokers, clients, users and IPs.",
        {
            "get": Verb(
                "config:get", "Show the values set for one entity, or for all of a type.", ("cluster.CONFIG",)
            ),
            "set": Verb("config:set_values", "Set values of one entity and notify the brokers.", CHANGE),
            "unset": Verb(
                "config:unset",
                "Remove values of one entity, back to the defaults, and notify the brokers.",
                CHANGE,
            ),
        },
    ),
    "reassign": Group(
        "Move replicas: plan, execute, verify, cancel, throttle.",
        {
            "plan": Verb(
                "reassign.plan:plan",
                "Plan replica moves, as few as possible, and write the plan to files.",
                ("reassign.MOVE", "reassign.LOAD", "reassign.BATCH", "reassign.PLAN"),
            ),
            "execute": Verb(
                "reassign.execute:execute",
                "Execute a plan batch by batch, then remove its throttle.",
                ("reassign.MOVE", *CHANGE),
            ),
            "verify": Verb(
                "reassign.verify:verify",
                "Check whether each partition of a plan is in place and in sync.",
                ("reassign.PARTITION",),
            ),
            "status": Verb(
                "reassign.verify:status",
                "Show running moves, their progress and what they wait for.",
                ("reassign.PARTITION",),
            ),
            "cancel": Verb(
                "reassign.execute:cancel",
                "Cancel the moves of a plan, restore the original replicas and remove its throttle.",
                CHANGE,
            ),
            "throttle": Verb(
                "reassign.throttle:throttle",
                "List throttles; set or clear those of a plan.",
                ("reassign.THROTTLE", *CHANGE),
            ),
        },
    ),
    "elect": Group(
        "Elect preferred leaders, or unclean ones; show partitions led by others.",
        {
            "preferred": Verb(
                "elect:preferred",
                "Elect the preferred leader of each partition.",
                ("cluster_wide.ELECTION", *CHANGE),
            ),
            "unclean": Verb(
                "elect:unclean",
                "Elect a leader outside the ISR, with a forecast of what is lost.",
                ("cluster_wide.CANDIDATE", "cluster_wide.ELECTION", *CHANGE),
            ),
            "status": Verb(
                "elect:status",
                "Show partitions not led by their preferred leader, and what an election would do.",
                ("cluster_wide.ELECTION",),
            ),
        },
    ),
    "cluster": Group(
        "Describe the cluster, check its health, predict broker failures.",
        {
            "describe": Verb(
                "cluster.describe:describe",
                "Describe the cluster: version, controller, counts, KRaft quorum and features.",
                ("cluster_wide.CLUSTER", "kraft.QUORUM_MEMBER", "kraft.FEATURE"),
            ),
            "brokers": Verb(
                "cluster.describe:brokers",
                "List brokers with their replicas and leaders.",
                ("cluster_wide.BROKER",),
            ),
            "disks": Verb(
                "cluster.describe:disks",
                "Show the log directories of brokers: state, bytes, replicas.",
                ("cluster_wide.LOG_DIR",),
            ),
            "controller": Verb(
                "cluster.describe:controller",
                "Show the controller, its epoch and since when it is controller.",
                ("cluster_wide.CONTROLLER",),
            ),
            "health": Verb(
                "cluster.describe:health",
                "Check the health of the cluster, one row per check.",
                ("cluster_wide.HEALTH",),
            ),
            "predict": Verb(
                "cluster.describe:predict",
                "Predict the leader of each partition if brokers stopped.",
                ("cluster_wide.PREDICTION", "kraft.QUORUM"),
            ),
            "rolling": Verb(
                "cluster.describe:rolling",
                "Show the order of a rolling restart, and whether the next one can be stopped now.",
                ("cluster_wide.RESTART",),
            ),
            "unregister": Verb(
                "cluster.describe:unregister",
                "Remove the registration of a broker that is gone for good.",
                CHANGE,
            ),
        },
    ),
    "top": Verb(
        "cluster.top:top",
        "Show brokers, what is wrong, moves and lag on one screen, again and again.",
        ("cluster_wide.BROKER", "cluster_wide.HEALTH", "reassign.PARTITION", "live_groups.GROUP"),
    ),
    "quorum": Group(
        "Describe the KRaft quorum, add and remove voters.",
        {
            "describe": Verb(
                "cluster.quorum:describe",
                "Describe the quorum: leader, voters, observers and their lag.",
                ("kraft.QUORUM", "kraft.QUORUM_MEMBER"),
            ),
            "add": Verb("cluster.quorum:add", "Add controllers to the voters.", CHANGE),
            "remove": Verb("cluster.quorum:remove", "Remove a controller from the voters.", CHANGE),
        },
    ),
    "feature": Group(
        "List features of a KRaft cluster; upgrade and downgrade them.",
        {
            "list": Verb(
                "cluster.feature:list_features",
                "List features: levels in force and supported, and what an upgrade adds.",
                ("kraft.FEATURE_LEVELS",),
            ),
            "upgrade": Verb("cluster.feature:upgrade", "Raise the levels of features.", CHANGE),
            "downgrade": Verb("cluster.feature:downgrade", "Lower the levels of features.", CHANGE),
        },
    ),
    "migration": Group(
        "Follow a migration from ZooKeeper to KRaft and compare both sides.",
        {
            "status": Verb(
                "migration:status",
                "Show the phase of a migration from ZooKeeper to KRaft.",
                ("migration.MIGRATION",),
            ),
            "check": Verb(
                "migration:check",
                "Compare the metadata in ZooKeeper with that of a KRaft controller.",
                ("migration.MIGRATION", FINDING, "migration.DIFFERENCE", "migration.COMPARISON"),
            ),
        },
    ),
    "group": Group(
        "Examine and change groups of a running cluster: offsets, members, deletion.",
        {
            "list": Verb(
                "group:list_groups",
                "List the groups of all coordinators, of every group protocol.",
                ("live_groups.GROUP",),
            ),
            "describe": Verb(
                "group:describe",
                "Describe groups: members, assignments, offsets and lag.",
                ("live_groups.GROUP", "live_groups.MEMBER", "live_groups.OFFSET"),
            ),
            "export": Verb(
                "group:export",
                "Export the committed offsets of a group for kafka-consumer-groups --from-file.",
                ("live_groups.OFFSET",),
            ),
            "reset": Verb(
                "group:reset",
                "Reset the offsets of a group; without --execute only show the new ones.",
                ("live_groups.RESET", *CHANGE),
            ),
            "reset-plan": Verb(
                "group:reset_plan",
                "Plan an offset reset: new offsets, records skipped or read again.",
                ("live_groups.RESET",),
            ),
            "delete-offsets": Verb(
                "group:delete_offsets",
                "Delete offsets of a group.",
                ("live_groups.RESET", *CHANGE),
            ),
            "delete": Verb("group:delete", "Delete groups and their offsets.", CHANGE),
            "remove-member": Verb("group:remove_member", "Remove members from a group.", CHANGE),
        },
    ),
    "consumer": Group(
        "Examine old ZooKeeper-based consumer groups (up to 1.x).",
        {
            "list": Verb(
                "consumer:list_groups",
                "List old consumer groups, with their lag if brokers answer.",
                ("consumer.GROUP",),
            ),
            "describe": Verb(
                "consumer:describe",
                "Describe an old consumer group: members, owners, offsets, lag.",
                ("consumer.MEMBER", "consumer.OFFSET"),
            ),
            "assign": Verb(
                "consumer:assign",
                "Show which consumer thread an algorithm gives each partition to.",
                ("consumer.ASSIGNMENT",),
            ),
        },
    ),
    "znode": Group(
        "List, explain and export znodes.",
        {
            "tree": Verb(
                "znode:tree", "List znodes with sizes, ages and ephemeral owners.", ("znodes.ZNODE",)
            ),
            "show": Verb(
                "znode:show", "Explain znodes: purpose, writer and content.", ("znodes.ZNODE_CONTENT",)
            ),
            "export": Verb("znode:export", "Export all znodes to a file.", ("znodes.EXPORT",)),
        },
    ),
    "journal": Group(
        "List, verify, undo and resume changes.",
        {
            "list": Verb("journal:list_changes", "List changes, oldest first.", ("changes.CHANGE",)),
            "show": Verb(
                "journal:show",
                "Show a change: stages, writes, and how to undo it.",
                ("changes.CHANGE", "changes.JOURNAL_ENTRY", "changes.WRITE"),
            ),
            "verify": Verb(
                "journal:verify",
                "Check that no entry was changed, removed or added since it was written.",
                (FINDING,),
            ),
            "undo": Verb(
                "journal:undo", "Undo a change, if the cluster is still as the change left it.", CHANGE
            ),
            "resume": Verb(
                "journal:resume", "Resume an interrupted change.", (*CHANGE, "changes.JOURNAL_ENTRY")
            ),
        },
    ),
    "finding": Verb(
        "about.finding:finding",
        "Explain a finding: meaning, cause and action; without CODE list all.",
        ("house.FINDING_TYPE",),
    ),
    "schema": Verb("about.schema:schema", "Print the JSON Schema of the rows of a command."),
    "doctor": Verb(
        "about.doctor:doctor",
        "Show settings and their origin, and check codecs, CRC, Java and Spark.",
        ("house.SETTING", "house.CHECK"),
    ),
    "config-file": Group(
        "Write, check and show the file of contexts.",
        {
            "init": Verb(
                "about.config_file:init", "Write a file of contexts to fill in, with every key explained."
            ),
            "check": Verb(
                "about.config_file:check",
                "Check every context: keys, values, files.",
                ("house.CONTEXT",),
            ),
            "show": Verb(
                "about.config_file:show", "Show the contexts, without their secrets.", ("house.CONTEXT",)
            ),
        },
    ),
    "completion": Verb("about.completion:completion", "Print the completion script for a shell."),
}
