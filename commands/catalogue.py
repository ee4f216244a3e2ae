"""The list of commands: where each lives, its short help, and the rows it prints.

`kctl --help` is written from this table alone, so that nothing else is imported; a test compares the short
help with the command's own, and `kctl schema` reads the rows. Rows are named as `MODULE.NAME` in `kctl/rows`.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Verb(NamedTuple):
    """A command: `MODULE:FUNCTION` under `commands`, its first line of help, the rows it prints."""

    target: str
    help: str
    rows: tuple[str, ...] = ()


class Group(NamedTuple):
    """Commands about one subject; `own` is what the name runs without a verb, if anything."""

    help: str
    verbs: dict[str, Verb]
    own: Verb | None = None

    def commands(self, name: str) -> dict[str, Verb]:
        """Each command by its words."""
        own = {name: self.own} if self.own else {}
        return own | {f"{name} {verb}": row for verb, row in self.verbs.items()}


# Rows that several commands print.
SHARED = {
    "FINDING": ("common.FINDING",),
    "JUDGED": ("judging.JUDGEMENT", "judging.COVERAGE"),
    "CHANGE": ("changes.CHANGE", "changes.WRITE", "changes.REFUSED"),
    "DUMP_ENTRIES": (
        *("dump.INDEX_ENTRY", "dump.TIME_INDEX_ENTRY", "dump.TRANSACTION_ENTRY"),
        *("dump.PRODUCER_ENTRY", "dump.OFFSET_ENTRY", "dump.EPOCH_ENTRY"),
    ),
}
# Groups at the margin, their commands below them; of each command, indented more, where it lives and its rows: their
# names, or one of `SHARED`. What has such a line at the margin is a command without a group, or also one.
TABLE = """
inventory  List what evidence holds: each file, what it was recognised as, what was understood of it.
        inventory:inventory audit.EVIDENCE_FILE audit.EVIDENCE_GROUP audit.INVENTORY
segment  Print, check and rebuild segments and the files beside them.
    dump  Print batches, records and entries of partition files.
        segment.dump:dump dump.BATCH dump.RECORD DUMP_ENTRIES FINDING
    verify  Check segments and the files beside them, byte by byte.
        segment.verify:verify FINDING verify.FILE JUDGED common.SUMMARY
    rebuild  Rebuild indexes, producer snapshots and epochs from the log.
        segment.rebuild:rebuild verify.REBUILT
checkpoint  Print checkpoint files of a log directory.
    show  Print the entries of checkpoint files.
        checkpoint:show dump.OFFSET_ENTRY dump.EPOCH_ENTRY
log-dir  Forecast what a broker does to its log directories.
    start  Forecast what a broker does to these log directories when it starts.
        log_dir:start verify.START verify.START_STEP FINDING JUDGED
epoch  Examine leader epochs of replicas, and predict truncation.
    show  Show the leader epochs of each replica from its checkpoint and its batches.
        epoch:show replica.LINEAGE replica.EPOCH_DIFFERENCE FINDING
    end-offset  Show how each replica would answer OffsetsForLeaderEpoch.
        epoch:end_offset replica.END_OFFSET live.LEADER_END_OFFSET
    truncation  Show the offset that each follower would truncate to under a leader.
        epoch:truncation replica.TRUNCATION
    compare  Compare the leader epochs of replicas and show where they diverge.
        epoch:compare replica.LINEAGE replica.DIVERGENCE replica.VERDICT FINDING JUDGED
replica  Compare replicas, find lost records, explain offsets, simulate replication.
    compare  Compare the replicas of every partition that two or more brokers hold.
        replica.compare:compare replica.LINEAGE replica.DIVERGENCE replica.VERDICT replica.REJOIN FINDING JUDGED
    loss  Find lost records: what was lost, since when and why.
        replica.compare:loss replica.LOSS FINDING JUDGED
    recover  Produce lost records to the cluster again.
        replica.recover:recover replica.RECOVERY FINDING CHANGE
    explain  Show the history of one offset: who wrote it, where it is, why it is gone.
        replica.compare:explain replica.EXPLANATION
    simulate  Simulate replication: produce, fetch, crash, restart and elect.
        replica.simulate:simulate replica.REPLICA_STATE replica.SIMULATION replica.VIOLATION replica.EXPLORATION
    verify  Compare every replica of every partition while the cluster runs.
        replica.verify:verify live.VERIFIED live.VERIFICATION replica.DIVERGENCE FINDING
state-log  Merge broker logs, show leadership history, explain lines.
    merge  Merge broker logs by time.
        state_log:merge state_log.EVENT FINDING
    timeline  Show the leadership history of partitions, controllers and brokers.
        state_log:timeline state_log.LEADER state_log.CONTROLLER_TERM state_log.QUORUM_STATE state_log.METADATA_LOG
        state_log.BROKER_STATE FINDING JUDGED
    explain  Explain a line of a broker log, or an exception.
        state_log:explain state_log.TEMPLATE state_log.EXCEPTION
remote  Examine tiered storage: metadata, objects and local logs.
    format  Print the records of the remote log metadata topic.
        remote.format:remote_format remote.METADATA_RECORD FINDING
    segments  List remote segments by their metadata records.
        remote.segments:segments remote.REMOTE_SEGMENT remote.REMOTE_TOTAL FINDING
    lookup  Find the remote segment and objects that serve an offset.
        remote.rules:lookup remote.LOOKUP FINDING
    plan  Show the next tasks of each leader: copy, delete remote segments, delete local segments.
        remote.rules:plan remote.PLAN_PARTITION remote.PLAN_STEP FINDING
    follower  Show how a new, lagging or returning follower rebuilds its state.
        remote.rules:follower remote.FOLLOWER FINDING
    audit  Check tiered storage: metadata against objects against local logs.
        remote.audit:audit FINDING remote.TIER_PARTITION JUDGED remote.TIER_SUMMARY
    partition-of  Show which metadata partition holds the records of a partition.
        remote.segments:partition_of remote.METADATA_PARTITION
offsets  Read consumer groups and their offsets from segments.
    list  List the consumer groups in __consumer_offsets.
        offsets:list_groups internal_topics.GROUP FINDING
    show  Show the members and committed offsets of a group.
        offsets:show internal_topics.GROUP_MEMBER internal_topics.COMMITTED_OFFSET FINDING
    history  Show every commit of a group that the log still holds, oldest first.
        offsets:history internal_topics.COMMITTED_OFFSET FINDING
    reset-file  Print the offsets of a group as a file for kafka-consumer-groups --from-file.
        offsets:reset_file
transactions  Read transactions from segments; find and abort hanging ones.
    list  List the transactional ids that coordinators know.
        transactions:list_transactions internal_topics.TRANSACTION FINDING
    show  Show the history of a transactional id, oldest first.
        transactions:show internal_topics.TRANSACTION FINDING
    hanging  Find transactions that are open in data logs and that no coordinator will end.
        transactions:hanging internal_topics.OPEN_TRANSACTION FINDING JUDGED
    abort  Abort a hanging transaction of a partition.
        transactions:abort CHANGE
metadata  Read the metadata log of a KRaft cluster.
    show  Show topics, partitions, brokers, features and configurations of a KRaft cluster.
        metadata:show internal_topics.METADATA internal_topics.METADATA_BROKER internal_topics.METADATA_TOPIC
        internal_topics.METADATA_PARTITION FINDING
collect  Copy the evidence of brokers, while they run, with a manifest.
        collect.copy:collect verify.COLLECTED verify.COLLECTION_SUMMARY live.REPLICA live.PRODUCER
    verify  Check a copy against its manifest.
        collect.copy:verify FINDING verify.COLLECTION_SUMMARY
    pack  Write a copy into one file, which every command reads.
        collect.copy:pack FINDING verify.PACKED
audit  Check everything in the evidence of a cluster and write a report.
    run  Check everything in the evidence and write tables and an HTML report.
        audit:run FINDING replica.LOSS JUDGED audit.AUDIT audit.AUDIT_ESTIMATE
        audit.EVIDENCE_FILE audit.EVIDENCE_GROUP audit.INVENTORY
    report  Write the HTML report again from the tables of an audit.
        audit:report
    sql  Query the tables of an audit with SQL.
        audit:sql audit.SQL_ROW
topic  List, describe, create, alter and delete topics.
    list  List topics, including those marked for deletion.
        topic:list_topics cluster.TOPIC
    describe  Describe topics: replicas, leaders, ISR, configuration.
        topic:describe cluster.TOPIC cluster.PARTITION
    create  Create a topic, with replicas placed as Kafka does.
        topic:create CHANGE
    delete  Delete a topic and all its records.
        topic:delete CHANGE
    alter  Add partitions to a topic.
        topic:alter CHANGE
    delete-records  Delete the oldest records of a topic.
        topic:delete_records live.DELETION CHANGE
    config  Show, set or unset the configuration of a topic.
        config:topic_config cluster.CONFIG CHANGE
config  Get and set configurations of topics, brokers, clients, users and IPs.
    get  Show the values set for one entity, or for all of a type.
        config:get cluster.CONFIG
    set  Set values of one entity and notify the brokers.
        config:set_values CHANGE
    unset  Remove values of one entity, so that the defaults apply, and notify the brokers.
        config:unset CHANGE
reassign  Move replicas: plan, execute, verify, cancel, throttle.
    plan  Plan replica moves, as few as possible, and write the plan to files.
        reassign.plan:plan reassign.MOVE reassign.LOAD reassign.BATCH reassign.PLAN
    execute  Execute a plan batch by batch, then remove its throttle.
        reassign.execute:execute reassign.MOVE CHANGE
    verify  Check whether each partition of a plan is in place and in sync.
        reassign.verify:verify reassign.PARTITION
    status  Show running moves, their progress and what they wait for.
        reassign.verify:status reassign.PARTITION
    cancel  Cancel the moves of a plan, restore the original replicas and remove its throttle.
        reassign.execute:cancel CHANGE
    throttle  List throttles; set or clear those of a plan.
        reassign.throttle:throttle reassign.THROTTLE CHANGE
elect  Elect preferred or unclean leaders; show partitions without their preferred leader.
    preferred  Elect the preferred leader of each partition.
        elect:preferred cluster_wide.ELECTION CHANGE
    unclean  Elect a leader outside the ISR, with a forecast of what is lost.
        elect:unclean cluster_wide.CANDIDATE cluster_wide.ELECTION CHANGE
    status  Show partitions not led by their preferred leader, and what an election would do.
        elect:status cluster_wide.ELECTION
cluster  Describe the cluster, check its health, predict broker failures.
    describe  Describe the cluster: version, controller, counts, KRaft quorum and features.
        cluster.describe:describe cluster_wide.CLUSTER kraft.QUORUM_MEMBER kraft.FEATURE
    brokers  List brokers with their replicas and leaders.
        cluster.describe:brokers cluster_wide.BROKER
    disks  Show the log directories of brokers: state, bytes, replicas.
        cluster.describe:disks cluster_wide.LOG_DIR
    controller  Show the controller, its epoch and when it was elected.
        cluster.describe:controller cluster_wide.CONTROLLER
    health  Check the health of the cluster, one row per check.
        cluster.describe:health cluster_wide.HEALTH
    predict  Predict the leader of each partition if brokers stopped.
        cluster.describe:predict cluster_wide.PREDICTION kraft.QUORUM
    rolling  Show the order of a rolling restart, and whether the next one can be stopped now.
        cluster.describe:rolling cluster_wide.RESTART
    unregister  Remove the registration of a broker that is gone for good.
        cluster.describe:unregister CHANGE
top  Show brokers, problems, moves and lag on one screen that refreshes.
        cluster.top:top cluster_wide.BROKER cluster_wide.HEALTH reassign.PARTITION live_groups.GROUP
quorum  Describe the KRaft quorum, add and remove voters.
    describe  Describe the quorum: leader, voters, observers and their lag.
        cluster.quorum:describe kraft.QUORUM kraft.QUORUM_MEMBER
    add  Add controllers to the voters.
        cluster.quorum:add CHANGE
    remove  Remove a controller from the voters.
        cluster.quorum:remove CHANGE
feature  List features of a KRaft cluster; upgrade and downgrade them.
    list  List features: levels in force and supported, and what an upgrade adds.
        cluster.feature:list_features kraft.FEATURE_LEVELS
    upgrade  Raise the levels of features.
        cluster.feature:upgrade CHANGE
    downgrade  Lower the levels of features.
        cluster.feature:downgrade CHANGE
migration  Follow a migration from ZooKeeper to KRaft and compare both sides.
    status  Show the phase of a migration from ZooKeeper to KRaft.
        migration:status migration.MIGRATION
    check  Compare the metadata in ZooKeeper with that of a KRaft controller.
        migration:check migration.MIGRATION FINDING migration.DIFFERENCE migration.COMPARISON
group  Examine and change groups of a running cluster: offsets, members, deletion.
    list  List the groups of all coordinators, of every group protocol.
        group:list_groups live_groups.GROUP
    describe  Describe groups: members, assignments, offsets and lag.
        group:describe live_groups.GROUP live_groups.MEMBER live_groups.OFFSET FINDING
    export  Export the committed offsets of a group for kafka-consumer-groups --from-file.
        group:export live_groups.OFFSET
    reset  Reset the offsets of a group; without --execute only show the new ones.
        group:reset live_groups.RESET CHANGE
    reset-plan  Plan an offset reset: new offsets, records skipped or read again.
        group:reset_plan live_groups.RESET
    delete-offsets  Delete offsets of a group.
        group:delete_offsets live_groups.RESET CHANGE
    delete  Delete groups and their offsets.
        group:delete CHANGE
    remove-member  Remove members from a group.
        group:remove_member CHANGE
consumer  Examine old ZooKeeper-based consumer groups (up to 1.x).
    list  List old consumer groups, with their lag if brokers answer.
        consumer:list_groups consumer.GROUP
    describe  Describe an old consumer group: members, owners, offsets, lag.
        consumer:describe consumer.MEMBER consumer.OFFSET
    assign  Show the consumer thread that an algorithm assigns to each partition.
        consumer:assign consumer.ASSIGNMENT
znode  List, explain and export znodes.
    tree  List znodes with sizes, ages and ephemeral owners.
        znode:tree znodes.ZNODE
    show  Explain znodes: purpose, writer and content.
        znode:show znodes.ZNODE_CONTENT
    export  Export all znodes to a file.
        znode:export znodes.EXPORT
acl  List and change rules of access; show what they decide.
    list  List rules of access.
        access.acl:list_acls access.ACL
    check  Show whether something is allowed, and by which rule.
        access.acl:check access.DECISION
    create  Create rules of access.
        access.acl:create access.ACL access.ACCESS CHANGE
    delete  Delete rules of access: those that fit all that is given.
        access.acl:delete access.ACL access.ACCESS CHANGE
    copy  Give a principal the rules of another one; those that it has already stay.
        access.acl:copy access.ACL access.ACCESS CHANGE
    audit  Find rules that decide nothing, or more than was meant.
        access.acl:audit FINDING
user  List, create and delete SCRAM users; set passwords.
    list  List users with SCRAM credentials.
        access.user:list_users access.USER
    create  Create a user with SCRAM credentials.
        access.user:create access.USER CHANGE
    set-password  Set the password of a user.
        access.user:set_password access.USER CHANGE
    delete  Delete the SCRAM credentials of a user; its rules stay.
        access.user:delete access.USER CHANGE
token  List, create, renew and expire delegation tokens.
    list  List delegation tokens, with their owners, renewers and times.
        access.token:list_tokens access.TOKEN
    create  Create a delegation token, and show its secret once.
        access.token:create access.ISSUED_TOKEN CHANGE
    renew  Put off the end of a delegation token.
        access.token:renew access.TOKEN CHANGE
    expire  End a delegation token, now or at a time.
        access.token:expire access.TOKEN CHANGE
quota  List, set and explain quotas of users, clients and addresses.
    list  List quotas that are set.
        access.quota:list_quotas access.QUOTA
    check  Show the quotas in force for a user and a client id, and the level that sets each.
        access.quota:check access.QUOTA
    set  Set quotas of a user, a client id, both together, or an address.
        access.quota:set_quota CHANGE
    unset  Remove quotas, so that the next level decides.
        access.quota:unset CHANGE
export  Export topics, configurations, users, quotas and rules to a file that `kctl apply` reads.
        cluster_file.export:export
diff  Show how a cluster differs from what files ask for.
        cluster_file.compare:diff changes.DRIFT
apply  Make a cluster as files ask for.
        cluster_file.apply:apply changes.DRIFT CHANGE
journal  List, verify, undo and resume changes.
    list  List changes, oldest first.
        journal:list_changes changes.CHANGE
    show  Show a change: stages, writes, and how to undo it.
        journal:show changes.CHANGE changes.JOURNAL_ENTRY changes.WRITE
    verify  Check that no entry was changed, removed or added since it was written.
        journal:verify FINDING
    undo  Undo a change, if the cluster is still as the change left it.
        journal:undo CHANGE
    resume  Resume an interrupted change.
        journal:resume CHANGE changes.JOURNAL_ENTRY
help  Find the command for what you want to know, in your own words.
        about.questions:help_ house.ANSWER
finding  Explain a finding: meaning, cause and action; without CODE list all.
        about.finding:finding house.FINDING_TYPE
schema  Print the JSON Schema of the rows of a command.
        about.schema:schema
doctor  Show settings and their origin, and check codecs, CRC, Java and Spark.
        about.doctor:doctor house.SETTING house.CHECK
config-file  Write, check and show the configuration file of contexts.
    init  Write a file of contexts to fill in, with every key explained.
        about.config_file:init
    import  Write a context from a file of Kafka's client properties.
        about.config_file:import_context
    check  Check every context: keys, values, files.
        about.config_file:check house.CONTEXT
    show  Show the contexts, without their secrets.
        about.config_file:show house.CONTEXT
completion  Print the completion script for a shell.
        about.completion:completion
"""


def _verb(text: str) -> tuple[str, Verb]:
    title, words = text.split("\n", 1)
    name, help = title.split("  ", 1)
    target, *rows = words.split()
    return name, Verb(target, help, tuple(row for word in rows for row in SHARED.get(word, (word,))))


def _commands(table: str) -> Iterator[tuple[str, Group | Verb]]:
    for text in re.split(r"\n(?=\S)", table.strip()):
        title, *verbs = re.split(r"\n {4}(?=\S)", text)
        if verbs:
            name, help = title.partition("\n")[0].split("  ", 1)
            yield name, Group(help, dict(map(_verb, verbs)), _verb(title)[1] if "\n" in title else None)
        else:
            yield _verb(title)


COMMANDS: dict[str, Group | Verb] = dict(_commands(TABLE))


def verb_of(words: Sequence[str]) -> Verb | None:
    """The command that these words begin with; None for a group alone and for unknown words."""
    entry = COMMANDS.get(words[0]) if words else None
    if isinstance(entry, Group):
        return entry.verbs.get(words[1], entry.own) if len(words) > 1 else entry.own
    return entry
