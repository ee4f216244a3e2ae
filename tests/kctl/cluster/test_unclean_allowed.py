"""What a changed value of `unclean.leader.election.enable` allows, by what brokers tell of their files."""

from __future__ import annotations

from typing import Any

import pytest

from kctl.changes.kinds.configs import AlterConfig
from kctl.changes.unclean_allowed import UNCLEAN, Allowed, newly_allowed
from kctl.cluster.state import (
    DEFAULT,
    Broker,
    ClusterState,
    Controller,
    EntityConfig,
    PartitionState,
    Topic,
)
from kctl.cluster.versions import parse_version
from kctl.model import TopicPartition
from kctl.operations.configs import entity_path


class Told:
    """A cluster of which this is told."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state

    def read_state(self, *args: Any, **options: Any) -> ClusterState:
        return self.state


def unset(entity: tuple[str, str], files: dict[int, dict[str, str]]) -> Allowed:
    """What unsetting a dynamic `false` allows where controller 1 is active and a partition has no leader."""
    state = ClusterState(
        cluster_id="x",
        kafka_version=parse_version("3.9"),
        brokers={broker_id: Broker(broker_id, "h", 1) for broker_id in (1, 2)},
        controller=Controller(1, 1),
        topic_names=("t",),
        topics={"t": Topic(name="t", partitions={0: (1, 2, 3)})},
        partition_states={TopicPartition("t", 0): PartitionState(-1, 5, (3,))},
        configs={entity: EntityConfig(*entity, values={UNCLEAN: "false"})},
        broker_files=files,
        backend="admin",
    )
    change = AlterConfig.of(*entity, {UNCLEAN: None}, {UNCLEAN: "false"})
    return newly_allowed(Told(state), [change])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("entity", "files", "is_known"),
    [
        (("brokers", DEFAULT), {1: {}, 2: {}}, False),  # the value in force hides that of a file
        (("brokers", DEFAULT), {1: {UNCLEAN: "true"}, 2: {UNCLEAN: "true"}}, True),
        (("topics", "t"), {2: {}}, False),  # the active controller does not answer
        (("topics", "t"), {}, False),
    ],
)
def test_a_file_that_is_not_told_may_allow_it(
    entity: tuple[str, str], files: dict[int, dict[str, str]], is_known: bool
) -> None:
    allowed = unset(entity, files)
    assert allowed.waiting == (TopicPartition("t", 0),)
    assert allowed.is_known is is_known


def test_files_that_forbid_it_allow_nothing() -> None:
    assert not unset(("topics", "t"), {1: {}, 2: {}}).waiting


def test_a_broker_has_one_name() -> None:
    assert entity_path("brokers", "01", parse_version("3.9")) == "1"
