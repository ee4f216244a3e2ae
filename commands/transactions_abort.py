"""`kctl transactions abort`: the end of a transaction that nobody else will end."""

from __future__ import annotations

import click

from commands.changing import CHANGE_STATUS, How, carry_out, changes
from commands.connecting import open_for_change
from commands.frame import Frame, command
from commands.render import Outcome


@command(
    "abort",
    examples="""
    kctl transactions abort orders-0 --bootstrap-server kafka1:9092 --dry-run
    kctl transactions abort orders-0 --start-offset 752 --reason OPS-812
    """,
    status=CHANGE_STATUS,
)
@changes(timeout=60)
@click.argument("partition", metavar="TOPIC-PARTITION")
@click.option(
    "--start-offset", type=int, metavar="OFFSET", help="Which, where several are open: its first offset."
)
@click.option("--force", is_flag=True, help="Also where its coordinator still has the transaction.")
def abort(frame: Frame, how: How, partition: str, start_offset: int | None, force: bool) -> Outcome:
    """End a transaction that a partition holds open and its coordinator has forgotten.

    An abort marker is written to the partition's leader, so that readers of committed records go on. Refused while
    a coordinator has the transaction: it ends it by itself.
    """
    from kctl.errors import BadValue, Refused
    from kctl.model import TopicPartition

    topic, dash, number = partition.rpartition("-")
    if not dash or not number.isdecimal():
        raise BadValue(f"{partition!r} is not TOPIC-PARTITION")
    with open_for_change(frame) as cluster:
        if cluster.backend != "admin":
            raise Refused("only brokers write markers; nothing was written", "give --bootstrap-server")
        from kctl.wire.cluster import AdminCluster
        from kctl.wire.transactions import plan_abort

        assert isinstance(cluster, AdminCluster)
        plan = plan_abort(
            cluster, cluster.wire, TopicPartition(topic, int(number)), start_offset, force=force
        )
        return carry_out(frame, how, cluster, plan)
