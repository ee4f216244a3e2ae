"""The rights that each live command needs for a whole answer; tests run each command with these, and without each of them.

A right implies others: Read, Write, Alter and Delete imply Describe, and AlterConfigs implies DescribeConfigs (Kafka's
AclOperation). A command that lacks a right answers with what is left, and names the right.
"""

import re
from collections.abc import Iterator

from kctl.cluster.rights import CLUSTER, Right

# Names of commands, and rights behind two spaces. A resource without a name is the one that the command names.
TABLE = """
topic list  Describe Topic *
topic describe  DescribeConfigs Topic, Describe Topic, Describe Cluster
topic config get  DescribeConfigs Topic, Describe Topic
config get --entity-type brokers  DescribeConfigs Cluster
config get --entity-type users  DescribeConfigs Cluster
cluster describe  Describe Cluster, DescribeConfigs Cluster, Describe Topic *, DescribeConfigs Topic *
cluster brokers  Describe Cluster, Describe Topic *
top  Describe Cluster, DescribeConfigs Cluster, Describe Topic *, DescribeConfigs Topic *, Describe Group *
cluster disks  Describe Cluster
cluster controller  Describe Cluster
cluster health  Describe Cluster, DescribeConfigs Cluster, Describe Topic *, DescribeConfigs Topic *, Describe Group *
cluster predict  Describe Cluster, DescribeConfigs Cluster, Describe Topic *, DescribeConfigs Topic *
cluster rolling  Describe Cluster, DescribeConfigs Cluster, Describe Topic *, DescribeConfigs Topic *
cluster unregister  Alter Cluster, DescribeConfigs Cluster, Describe Topic *
quorum describe  Describe Cluster
quorum add, quorum remove  Alter Cluster
feature list
feature upgrade, feature downgrade  Alter Cluster
elect status  Describe Cluster, Describe Topic *
elect preferred, elect unclean  Alter Cluster, Describe Topic
reassign plan  Describe Cluster, Describe Topic
reassign verify  Describe Cluster, DescribeConfigs Cluster, Describe Topic, DescribeConfigs Topic
reassign status  Describe Cluster, DescribeConfigs Cluster, Describe Topic *, DescribeConfigs Topic *
reassign throttle list  DescribeConfigs Cluster, Describe Topic *, DescribeConfigs Topic *
reassign execute  Alter Cluster, Describe Topic
reassign execute --throttle  Alter Cluster, AlterConfigs Cluster, AlterConfigs Topic, Describe Topic
reassign cancel  Alter Cluster, AlterConfigs Cluster, AlterConfigs Topic, Describe Topic
reassign throttle set, reassign throttle clear  Describe Cluster, AlterConfigs Cluster, AlterConfigs Topic, Describe Topic
group list  Describe Cluster
group describe  Describe Group, Describe Topic *
group export  Describe Group, Describe Topic *
group reset-plan  Describe Group, Describe Topic *
group reset --execute  Read Group, Read Topic
group delete  Delete Group, Describe Topic *
group delete-offsets  Delete Group, Read Topic
group remove-member  Read Group
topic create  Create Topic, Describe Topic
topic alter  Alter Topic
topic config set, topic config unset  AlterConfigs Topic, Describe Topic
topic delete  Delete Topic
topic delete-records  Delete Topic, Describe Cluster, Describe Group *
config set --entity-type brokers, config unset --entity-type brokers  AlterConfigs Cluster
config set --entity-type users, config unset --entity-type users  AlterConfigs Cluster
replica verify  Read Topic, DescribeConfigs Topic
replica recover  Read Topic, Write Topic, DescribeConfigs Topic, Write TransactionalId kctl.recover.*
segment dump, segment verify, segment rebuild, log-dir start  Read Topic
epoch show, epoch end-offset, epoch truncation, epoch compare  Read Topic
replica compare, replica loss, replica explain, audit run  Read Topic
remote format, remote segments, remote lookup, remote plan, remote follower  Read Topic __remote_log_metadata
offsets list, offsets show, offsets history, offsets reset-file  Read Topic __consumer_offsets
transactions list, transactions show  Read Topic __transaction_state
transactions hanging  Read Topic, Describe TransactionalId *
collect  Describe Cluster, DescribeConfigs Cluster, Read Topic *, DescribeConfigs Topic *, Describe Group *, Describe TransactionalId *
acl list  Describe Cluster
acl check  Describe Cluster, DescribeConfigs Cluster
acl audit  Describe Cluster, DescribeConfigs Cluster, Describe Topic *, Describe Group *
acl create, acl delete, acl copy  Alter Cluster, DescribeConfigs Cluster, Describe Topic *, Describe Group *
token list  Describe DelegationToken *
token create --owner  CreateTokens User
token create, token renew, token expire
user list  Describe Cluster
user create, user set-password, user delete  Alter Cluster
quota list  DescribeConfigs Cluster
quota check  DescribeConfigs Cluster
quota set, quota unset  AlterConfigs Cluster
export  Describe Cluster, DescribeConfigs Cluster, Describe Topic *, DescribeConfigs Topic *
diff  Describe Cluster, DescribeConfigs Cluster, Describe Topic, DescribeConfigs Topic
apply  Alter Cluster, AlterConfigs Cluster, AlterConfigs Topic, Describe Topic *, Describe Group *
transactions abort  ClusterAction Cluster, DescribeConfigs Cluster, Read Topic, Describe TransactionalId *
"""
# Commands whose rights are those of something else.
AS_OTHERS = {"journal undo, journal resume": "those of the change"}


def rights() -> Iterator[tuple[str, tuple[Right, ...]]]:
    """The names of commands, and the rights that each needs."""
    for line in TABLE.strip().split("\n"):
        names, _, listed = line.partition("  ")
        yield names, tuple(map(_right, re.split(", ", listed))) if listed else ()


def _right(text: str) -> Right:
    operation, resource, *name = text.split(" ")
    named = "" if resource == CLUSTER else "".join(name)
    is_prefix = named.endswith("*") and named != "*"
    return Right(operation, resource, named.removesuffix("*") if is_prefix else named, is_prefix)


def markdown() -> str:
    """The table of docs/runbooks/connect-to-a-secured-cluster.md."""
    lines = ["| Command | Rights |", "|---|---|"]
    texts = {names: ", ".join(map(str, needed)) or "none" for names, needed in rights()}
    for names, text in (texts | AS_OTHERS).items():
        commands = ", ".join(f"`{name}`" for name in names.split(", "))
        lines.append(f"| {commands} | {text} |")
    return "\n".join(lines) + "\n"
