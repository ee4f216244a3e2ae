"""Losses of evidence, held against the cluster as it is: which of the lost records it has again."""

from collections.abc import Iterator
from pathlib import Path

from kctl.judging.judgement import Judgement
from kctl.judging.loss import judge_recovered
from kctl.model import SILENT, Progress, Row
from kctl.replica.loss.partition import Loss
from kctl.replica.loss.recovery import export_loss
from kctl.replica.loss.search import LossSearch, loss_row
from kctl.replica.recovery.comparison import LEFT_OUT, UNCOMMITTED, Fate, RangeFate
from kctl.replica.recovery.lost_ranges import LostRange, range_of
from kctl.scan.pool import Jobs
from kctl.wire.cluster import AdminCluster
from kctl.wire.recovering.planning import Recovery, RecoveryOptions


def recovered_rows(
    search: LossSearch,
    cluster: AdminCluster,
    folder: Path | None = None,
    progress: Progress = SILENT,
    jobs: Jobs = None,
) -> Iterator[Row | Judgement]:
    """The rows of `replica loss` with what the cluster has of each loss; exported below the folder where one is given."""
    results = list(search.results(progress, jobs))
    ranges = {
        id(loss): found
        for result in results
        for loss in result.losses
        if (found := range_of(loss)) is not None
    }
    options = RecoveryOptions(every=True, with_uncommitted=True, only_compares=True)
    recovery = Recovery(cluster, list(ranges.values()), options, progress)
    fates: dict[int, RangeFate] = {
        id(fate.lost): fate for partition in recovery.partitions() for fate in partition.ranges
    }
    for result in results:
        is_recovered = {id(loss): _is_recovered(ranges.get(id(loss)), fates) for loss in result.losses}
        for loss in result.losses:
            exported = None if folder is None else export_loss(loss, folder)
            row = loss_row(loss, exported, search.tier)
            fate = fates.get(id(ranges.get(id(loss))))
            row["recovered"] = fate.count(Fate.THERE) if fate else 0
            row["is_recovered"] = is_recovered[id(loss)]
            yield row
        for finding in result.findings:
            yield finding.row()
        judgement = search.judgement(result)
        decisive: list[Loss] = [loss for loss in result.losses if loss.loss_class != UNCOMMITTED]
        if decisive and all(is_recovered[id(loss)] for loss in decisive):
            is_at_least = any(loss.is_at_least for loss in decisive)
            judgement = judge_recovered(judgement, result.partition, is_at_least=is_at_least)
        yield judgement


def _is_recovered(lost: LostRange | None, fates: dict[int, RangeFate]) -> bool:
    """Whether the cluster has all of a range that consumers could have read."""
    fate = fates.get(id(lost))
    if lost is None or fate is None or not lost.is_whole or fate.unreadable:
        return False
    accounted = fate.count(Fate.THERE) + sum(map(fate.count, LEFT_OUT))
    return fate.records > 0 and accounted == fate.records
