"""The list of commands: where each lives, its short help, and the rows it prints.

`kctl --help` is written from this table alone, so that nothing else is imported; a test holds the short
help to the command's own, and `kctl schema` reads the rows. A new command is one more line here.
Rows are named as `MODULE.NAME` in `kctl/rows`.
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
        "Segments and the files beside them: print, check, rebuild.",
        {
            "dump": Verb(
                "segment_dump:dump",
                "Print the batches, records and entries of files of a partition.",
                ("dump.BATCH", "dump.RECORD", *DUMP_ENTRIES, FINDING),
            ),
            "verify": Verb(
                "segment:verify",
                "Check segments and the files beside them, byte by byte.",
                (FINDING, "verify.FILE", "common.SUMMARY"),
            ),
            "rebuild": Verb(
                "segment_rebuild:rebuild",
                "Write indexes, snapshots and epochs anew from the log.",
                ("verify.REBUILT",),
            ),
        },
    ),
    "checkpoint": Group(
        "Checkpoint files of a log directory.",
        {
            "show": Verb(
                "checkpoint:show",
                "Print the entries of checkpoint files.",
                ("dump.OFFSET_ENTRY", "dump.EPOCH_ENTRY"),
            ),
        },
    ),
    "epoch": Group(
        "Leader epochs of replicas, and what brokers would make of them.",
        {
            "show": Verb(
                "epoch:show",
                "Show the epochs of each replica: its checkpoint, its batches, and their differences.",
                ("replica.LINEAGE", "replica.EPOCH_DIFFERENCE", FINDING),
            ),
            "end-offset": Verb(
                "epoch:end_offset",
                "Say what each replica would answer to OffsetsForLeaderEpoch.",
                ("replica.END_OFFSET", "live.LEADER_END_OFFSET"),
            ),
            "truncation": Verb(
                "epoch:truncation",
                "Say to which offset each follower would truncate under a leader, by version.",
                ("replica.TRUNCATION",),
            ),
            "compare": Verb(
                "epoch:compare",
                "Show normalised lineages side by side, and where each pair of them parts.",
                ("replica.LINEAGE", "replica.DIVERGENCE", "replica.VERDICT", FINDING),
            ),
        },
    ),
    "replica": Group(
        "Replicas of a partition, from copies of brokers' log directories.",
        {
            "compare": Verb(
                "replica:compare",
                "Compare the replicas of every partition that two or more brokers hold.",
                ("replica.LINEAGE", "replica.DIVERGENCE", "replica.VERDICT", "replica.REJOIN", FINDING),
            ),
            "loss": Verb(
                "replica:loss",
                "Say which records a leader once held and the present lineage lacks, since when, and why.",
                ("replica.LOSS", FINDING),
            ),
            "explain": Verb(
                "replica:explain",
                "Tell the story of one offset: who wrote it, where it is, when it was committed, why it is gone.",
                ("replica.EXPLANATION",),
            ),
            "simulate": Verb(
                "replica_simulate:simulate",
                "Play a scenario of produce, fetch, crash, restart and elect over a model of the brokers.",
                ("replica.REPLICA_STATE", "replica.SIMULATION", "replica.VIOLATION", "replica.EXPLORATION"),
            ),
            "verify": Verb(
                "replica_verify:verify",
                "Compare every replica of every partition while the cluster runs.",
                ("live.VERIFIED", "live.VERIFICATION", "replica.DIVERGENCE", FINDING),
            ),
        },
    ),
    "state-log": Group(
        "What brokers' logs say: merged, as a history of who led when, line by line.",
        {
            "merge": Verb(
                "state_log:merge",
                "Merge brokers' logs by time, whatever their version, rotation, compression and zone.",
                ("state_log.EVENT", FINDING),
            ),
            "timeline": Verb(
                "state_log:timeline",
                "Say who led each partition from when to when, how each leadership began, and what proves it.",
                ("state_log.LEADER", "state_log.CONTROLLER_TERM", "state_log.BROKER_STATE", FINDING),
            ),
            "explain": Verb(
                "state_log:explain",
                "Say in words what a line of a broker's log means.",
                ("state_log.TEMPLATE",),
            ),
        },
    ),
    "remote": Group(
        "Tiered storage: metadata, objects and local logs.",
        {
            "format": Verb(
                "remote_format:remote_format",
                "Print the records of the remote log metadata topic.",
                ("remote.METADATA_RECORD", FINDING),
            ),
            "segments": Verb(
                "remote:segments",
                "List the remote segments, as their metadata records leave them.",
                ("remote.REMOTE_SEGMENT", "remote.REMOTE_TOTAL", FINDING),
            ),
            "lookup": Verb(
                "remote_rules:lookup",
                "Say which remote segment and objects serve an offset, and why none does.",
                ("remote.LOOKUP", FINDING),
            ),
            "plan": Verb(
                "remote_rules:plan",
                "Say what each leader's tasks would do next: copy, delete remote segments, free local ones.",
                ("remote.PLAN_PARTITION", "remote.PLAN_STEP", FINDING),
            ),
            "follower": Verb(
                "remote_rules:follower",
                "Say what a new, lagging or returning follower would do, and what it builds its state from.",
                ("remote.FOLLOWER", FINDING),
            ),
            "audit": Verb(
                "remote_audit:audit",
                "Hold metadata, stored objects and local logs of tiered storage against each other.",
                (FINDING, "remote.TIER_PARTITION", "remote.TIER_SUMMARY"),
            ),
            "partition-of": Verb(
                "remote:partition_of",
                "Say which partition of the metadata topic holds a partition's records.",
                ("remote.METADATA_PARTITION",),
            ),
        },
    ),
    "offsets": Group(
        "Consumer groups and their offsets, read from segments.",
        {
            "list": Verb(
                "offsets:list_groups", "List the consumer groups.", ("internal_topics.GROUP", FINDING)
            ),
            "show": Verb(
                "offsets:show",
                "Show a group's members and committed offsets.",
                ("internal_topics.GROUP_MEMBER", "internal_topics.COMMITTED_OFFSET", FINDING),
            ),
            "history": Verb(
                "offsets:history",
                "Show every commit of a group that is still in the log, oldest first.",
                ("internal_topics.COMMITTED_OFFSET", FINDING),
            ),
            "reset-file": Verb(
                "offsets:reset_file",
                "Print a group's offsets as a file for `kafka-consumer-groups --reset-offsets --from-file`.",
            ),
        },
    ),
    "transactions": Group(
        "Transactions, read from segments: known, open, hanging.",
        {
            "list": Verb(
                "transactions:list_transactions",
                "List the transactional ids that coordinators know.",
                ("internal_topics.TRANSACTION", FINDING),
            ),
            "show": Verb(
                "transactions:show",
                "Show what happened to a transactional id, oldest first.",
                ("internal_topics.TRANSACTION",),
            ),
            "hanging": Verb(
                "transactions:hanging",
                "Find transactions that data logs hold open and nobody will end.",
                ("internal_topics.OPEN_TRANSACTION", FINDING),
            ),
            "abort": Verb(
                "transactions_abort:abort",
                "End a transaction that a partition holds open and its coordinator has forgotten.",
                CHANGE,
            ),
        },
    ),
    "metadata": Group(
        "The metadata log of a KRaft cluster.",
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
            ),
        },
    ),
    "audit": Group(
        "Everything, over the evidence of a whole cluster.",
        {
            "run": Verb(
                "audit:run",
                "Examine everything in the evidence, and write tables and an HTML report.",
                (FINDING, "replica.LOSS", "audit.AUDIT"),
            ),
            "report": Verb("audit:report", "Make the HTML report anew from the tables of an audit."),
            "sql": Verb("audit:sql", "Ask the tables of an audit in SQL.", ("audit.SQL_ROW",)),
        },
    ),
    "topic": Group(
        "Topics of a cluster.",
        {
            "list": Verb(
                "topic:list_topics", "List the topics, those marked for deletion as well.", ("cluster.TOPIC",)
            ),
            "describe": Verb(
                "topic:describe",
                "Describe topics: replicas, leaders, ISR, configuration.",
                ("cluster.TOPIC", "cluster.PARTITION"),
            ),
            "create": Verb("topic:create", "Create a topic, replicas placed as Kafka places them.", CHANGE),
            "delete": Verb(
                "topic:delete", "Delete a topic and all its records. The name is taken literally.", CHANGE
            ),
            "alter": Verb(
                "topic:alter",
                "Add partitions to a topic. There is no way back, and keys go to other partitions than before.",
                CHANGE,
            ),
            "config": Verb(
                "config:topic_config",
                "Show, set or unset the configuration of a topic.",
                ("cluster.CONFIG", *CHANGE),
            ),
        },
    ),
    "config": Group(
        "Configurations of topics, brokers, clients, users and ips.",
        {
            "get": Verb(
                "config:get", "Show what is set for one entity, or for all of a type.", ("cluster.CONFIG",)
            ),
            "set": Verb("config:set_values", "Set values of one entity, and tell the brokers.", CHANGE),
            "unset": Verb(
                "config:unset",
                "Take values of one entity away, so that the defaults hold again, and tell the brokers.",
                CHANGE,
            ),
        },
    ),
    "reassign": Group(
        "Move replicas: plan, execute, verify, cancel.",
        {
            "plan": Verb(
                "reassign_plan:plan",
                "Plan where replicas go, with the fewest moves, and write the plan into files.",
                ("reassign.MOVE", "reassign.LOAD", "reassign.BATCH", "reassign.PLAN"),
            ),
            "execute": Verb(
                "reassign:execute",
                "Carry a plan out, batch after batch, and take its throttle away at the end.",
                ("reassign.MOVE", *CHANGE),
            ),
            "verify": Verb(
                "reassign_progress:verify",
                "Say of each partition of a plan whether it is in place and in sync.",
                ("reassign.PARTITION",),
            ),
            "status": Verb(
                "reassign_progress:status",
                "Show what is moving, how far it is and what it waits for; with a PLAN, of all its partitions.",
                ("reassign.PARTITION",),
            ),
            "cancel": Verb("reassign:cancel", "Take what is moving back to where it came from.", CHANGE),
            "throttle": Verb(
                "reassign_throttle:throttle",
                "List the throttles that are set; set or clear those of a plan.",
                ("reassign.THROTTLE", *CHANGE),
            ),
        },
    ),
    "elect": Group(
        "Preferred leaders: put them back, see which are not.",
        {
            "preferred": Verb(
                "elect:preferred",
                "Make the first replica of each partition its leader, where it is alive, in sync and does not lead.",
                ("cluster_wide.ELECTION", *CHANGE),
            ),
            "status": Verb(
                "elect:status",
                "Show the partitions that another than their preferred replica leads, and what an election would do.",
                ("cluster_wide.ELECTION",),
            ),
        },
    ),
    "cluster": Group(
        "The cluster as a whole, and what would happen to it.",
        {
            "describe": Verb(
                "cluster:describe",
                "Describe the cluster: version, controller, counts; of KRaft the quorum and the features as well.",
                ("cluster_wide.CLUSTER", "cluster_wide.QUORUM_MEMBER", "cluster_wide.FEATURE"),
            ),
            "brokers": Verb(
                "cluster:brokers",
                "List the brokers, those that are dead and hold replicas as well, with what they hold and lead.",
                ("cluster_wide.BROKER",),
            ),
            "controller": Verb(
                "cluster:controller",
                "Show who is controller, since when, and of which epoch.",
                ("cluster_wide.CONTROLLER",),
            ),
            "health": Verb(
                "cluster:health",
                "Check everything that can be seen to be wrong, a row a check.",
                ("cluster_wide.HEALTH",),
            ),
            "predict": Verb(
                "cluster:predict",
                "Say which leader each partition would get if brokers stopped, and which would have none.",
                ("cluster_wide.PREDICTION",),
            ),
        },
    ),
    "group": Group(
        "Consumer groups of a running cluster, over Kafka's own protocol.",
        {
            "list": Verb(
                "group:list_groups",
                "List the groups of all coordinators, of both group protocols.",
                ("live_groups.GROUP",),
            ),
            "describe": Verb(
                "group:describe",
                "Describe groups: members, what each has, committed offsets and how far behind they are.",
                ("live_groups.GROUP", "live_groups.MEMBER", "live_groups.OFFSET"),
            ),
            "export": Verb(
                "group:export",
                "Export a group's committed offsets, in the form that kafka-consumer-groups resets from.",
                ("live_groups.OFFSET",),
            ),
            "reset-plan": Verb(
                "group:reset_plan",
                "Plan where a group's offsets would be put, and what it would skip or read again.",
                ("live_groups.RESET",),
            ),
        },
    ),
    "consumer": Group(
        "Old consumers, who keep themselves in ZooKeeper (up to 1.x).",
        {
            "list": Verb(
                "consumer:list_groups",
                "List the groups of old consumers, with their lag where brokers answer.",
                ("consumer.GROUP",),
            ),
            "describe": Verb(
                "consumer:describe",
                "Describe a group of old consumers: members, owners, offsets, lag.",
                ("consumer.MEMBER", "consumer.OFFSET"),
            ),
            "assign": Verb(
                "consumer:assign",
                "Show which thread of a group an algorithm gives each partition to, beside who owns it now.",
                ("consumer.ASSIGNMENT",),
            ),
        },
    ),
    "znode": Group(
        "Znodes: the tree, one of them explained, all of them in a file.",
        {
            "tree": Verb(
                "znode:tree", "List znodes with sizes, ages and ephemeral owners.", ("znodes.ZNODE",)
            ),
            "show": Verb(
                "znode:show",
                "Explain a znode: what it is for, who writes it, what it says.",
                ("znodes.ZNODE_CONTENT",),
            ),
            "export": Verb(
                "znode:export",
                "Write all znodes into one file, which reading commands take with --snapshot; `-` for standard output.",
                ("znodes.EXPORT",),
            ),
        },
    ),
    "journal": Group(
        "The journal of changes.",
        {
            "list": Verb("journal:list_changes", "List the changes, oldest first.", ("changes.CHANGE",)),
            "show": Verb(
                "journal:show",
                "Show a change: its stages, what was written, and what would take it back.",
                ("changes.CHANGE", "changes.JOURNAL_ENTRY", "changes.WRITE"),
            ),
            "verify": Verb(
                "journal:verify",
                "Check that no entry was changed, removed or added since it was written.",
                (FINDING,),
            ),
            "undo": Verb(
                "journal:undo",
                "Take a change back, where the cluster is still as the change left it.",
                CHANGE,
            ),
            "resume": Verb(
                "journal:resume",
                "Go on with a change that was cut off.",
                (*CHANGE, "changes.JOURNAL_ENTRY"),
            ),
        },
    ),
    "finding": Verb(
        "finding:finding",
        "Say what a finding means, where it comes from and what to do.",
        ("house.FINDING_TYPE",),
    ),
    "schema": Verb("schema:schema", "Print the JSON Schema of a command's rows."),
    "doctor": Verb(
        "doctor:doctor",
        "Say what is set, from where, and whether codecs, CRC, Java and Spark are in order.",
        ("house.SETTING", "house.CHECK"),
    ),
    "completion": Verb("completion:completion", "Print the completion script of a shell."),
}
