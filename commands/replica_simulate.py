"""`kctl replica simulate`: a model of replication, step by step, under the rules of any version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, cast

import click

from commands.frame import Frame, command
from commands.path_types import GIVEN
from commands.render import Outcome, Page, Row

if TYPE_CHECKING:
    from kctl.replication.scenario import Run, Scenario, Step


@command(
    "simulate",
    examples="""
    kctl replica simulate high-watermark-loss --kafka-version 0.10.2
    kctl replica simulate high-watermark-divergence --compare 0.10,2.8
    kctl replica simulate my-scenario.toml --kafka-version 3.9 --output jsonl
    kctl replica simulate --random 10000 --seed 7 --kafka-version 0.10
    """,
    status="0 played · 2 not a scenario or version · 3 no such file · 5 random faults broke a promise",
)
@click.argument("scenario", required=False, type=GIVEN)
@click.option(
    "--kafka-version", metavar="VERSION", default="3.9", show_default=True, help="Whose rules hold."
)
@click.option("--compare", metavar="V,V", help="Play under the rules of two versions, side by side.")
@click.option(
    "--random", "random_steps", type=click.IntRange(1, 10_000_000), metavar="N", help="N random steps."
)
@click.option("--seed", type=int, metavar="N", default=1, show_default=True, help="Of the random steps.")
@click.option("--power-failures", is_flag=True, help="Random crashes may lose what is not flushed.")
def simulate(
    frame: Frame,
    scenario: str | None,
    kafka_version: str,
    compare: str | None,
    random_steps: int | None,
    seed: int,
    power_failures: bool,
) -> Outcome:
    """Play a scenario of produce, fetch, crash, restart and elect over a model of the brokers.

    SCENARIO is a TOML file or one of: high-watermark-loss, high-watermark-divergence, unclean-election,
    power-failure. With --random the steps are drawn, and the protocol's promises are checked after each.
    """
    from kctl.replication.rules import rules_for
    from kctl.replication.scenario_file import read_scenario

    versions = [v.strip() for v in compare.split(",")] if compare else [kafka_version]
    if compare and len(versions) != 2:
        raise click.UsageError(f"--compare {compare!r} is not two versions, as 0.10,2.8")
    rules = [rules_for(version) for version in versions]
    if random_steps is not None:
        return Outcome(
            (row for one in rules for row in _explored(one, random_steps, seed, power_failures)), text=drawn
        )
    if scenario is None:
        raise click.UsageError("give a SCENARIO, or --random N")
    given = read_scenario(scenario)
    return Outcome((row for one in rules for row in _played(given, one)), text=drawn)


def _played(scenario: Scenario, rules: object) -> Iterator[Row]:
    from kctl.replication.rules import Rules
    from kctl.replication.scenario import play
    from kctl.rows.replica import SIMULATION

    assert isinstance(rules, Rules)
    run = None
    for number, step, note, run in play(scenario, rules):
        yield from _states(rules.kafka_version, number, step, note, run)
    assert run is not None
    yield SIMULATION(
        kafka_version=rules.kafka_version,
        scenario=scenario.name,
        lost=[p._asdict() for p in run.lost()],
        acknowledged_lost=[p._asdict() for p in run.lost_acknowledged()],
        diverged=[{"broker_ids": list(pair), "from_offset": at} for pair, at in run.diverged().items()],
        unclean_elections=run.unclean_elections,
    )


def _states(kafka_version: str, number: int, step: Step | None, note: str, run: Run) -> Iterator[Row]:
    from kctl.rows.replica import REPLICA_STATE

    part = run.partition
    for broker_id, replica in part.replicas.items():
        role = "leader" if broker_id == part.leader else "follower"
        yield REPLICA_STATE(
            kafka_version=kafka_version,
            step=number,
            action=str(step) if step else "start",
            note=note or None,
            broker_id=broker_id,
            role="halted" if replica.halted else role if replica.up else "down",
            log=list(replica.log),
            log_end_offset=replica.log_end_offset,
            high_watermark=replica.high_watermark,
            epochs=[list(e) for e in replica.epochs] if part.rules.has_epochs else None,
            leader_epoch=part.leader_epoch,
            isr=list(part.isr),
        )


def _explored(rules: object, steps: int, seed: int, power_failures: bool) -> Iterator[Row]:
    from kctl.replication.exploration import explore
    from kctl.replication.rules import Rules
    from kctl.rows.replica import EXPLORATION, VIOLATION

    assert isinstance(rules, Rules)
    counts: dict[str, int] = {}
    for found in explore(rules, steps=steps, seed=seed, power_failures=power_failures):
        counts[found.promise] = counts.get(found.promise, 0) + 1
        yield VIOLATION(
            kafka_version=rules.kafka_version,
            promise=found.promise,
            offset=found.offset,
            record=found.record,
            broker_ids=list(found.brokers),
            steps=[str(step) for step in found.steps],
            found_at=found.found_at,
        )
    yield EXPLORATION(
        kafka_version=rules.kafka_version,
        steps=steps,
        seed=seed,
        power_failures=power_failures,
        violations=counts,
    )


def drawn(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """The steps as tables, one version beside the other where two were played; then how it ended."""
    steps: dict[tuple[int, str], dict[str, list[Row]]] = {}
    ends: list[Row] = []
    for row in rows:
        if row["kind"] == "replica_state":
            key = cast(int, row["step"]), str(row["action"])
            steps.setdefault(key, {}).setdefault(str(row["kafka_version"]), []).append(row)
        else:
            ends.append(row)
    versions = list(dict.fromkeys(v for by_version in steps.values() for v in by_version))
    width = max(
        (len(line) for by in steps.values() for one in by.values() for line in _table(one)), default=0
    )
    if len(versions) > 1:
        yield "".join(f"Kafka {v}".ljust(width + 4) for v in versions).rstrip()
    before: list[list[str]] = []
    for (number, action), by_version in steps.items():
        yield page.style(f"{number:>3}  {action}" if number else "     start", "bold")
        blocks = [_table(by_version[v]) for v in versions]
        for lines in zip(*blocks, strict=True) if blocks != before else ():
            yield "".join(line.ljust(width + 4) for line in lines).rstrip()
        before = blocks
        notes = [(v, by_version[v][0]["note"]) for v in versions]
        for version, note in notes:
            if note:
                said = f"{version}: {note}" if len(versions) > 1 else f"{note}"
                yield page.style(f"     {said}", "warning")
    for row in ends:
        yield from _ending(row, page)


def _table(rows: list[Row]) -> list[str]:
    lines = []
    longest = max(len(_log(row)) for row in rows)
    for row in rows:
        mark = {"leader": "*", "follower": " ", "down": "-", "halted": "x"}[str(row["role"])]
        epochs = row["epochs"]
        shown = "" if epochs is None else "  epochs " + _epochs(cast("list[list[int]]", epochs))
        lines.append(
            f"     {mark}{row['broker_id']}  {_log(row):<{max(longest, 12)}}  LEO {row['log_end_offset']}"
            f"  HW {row['high_watermark']}{shown}"
        )
    return lines


def _log(row: Row) -> str:
    return " ".join(cast("list[str]", row["log"]))


def _epochs(epochs: list[list[int]]) -> str:
    return " ".join(f"{epoch}@{start}" for epoch, start in epochs) or "none"


def _ending(row: Row, page: Page) -> Iterator[str]:
    version = f"Kafka {row['kafka_version']}"
    if row["kind"] == "violation":
        names = {"committed_record_lost": "a committed record is lost at offset"}
        what = names.get(str(row["promise"]), "logs differ below the high watermark at offset")
        yield page.style(f"{version}: {what} {row['offset']} after", "error")
        yield "    " + "; ".join(cast("list[str]", row["steps"]))
        return
    if row["kind"] == "exploration":
        total = sum(cast("dict[str, int]", row["violations"]).values())
        yield f"{version}: {row['steps']} random steps, seed {row['seed']}: {total} promises broken"
        return
    lost = [str(one["record"]) for one in cast("list[dict[str, object]]", row["lost"])]
    acked = [str(one["record"]) for one in cast("list[dict[str, object]]", row["acknowledged_lost"])]
    diverged = cast("list[dict[str, object]]", row["diverged"])
    yield ""
    yield f"{version}: committed and lost: {', '.join(lost) or 'nothing'}"
    only_acked = [name for name in acked if name not in lost]
    if only_acked:
        yield f"{version}: acknowledged with acks=1 and lost: {', '.join(only_acked)}"
    for one in diverged:
        pair = " and ".join(map(str, cast("list[int]", one["broker_ids"])))
        yield f"{version}: brokers {pair} hold different records from offset {one['from_offset']} on"
