"""`kctl replica simulate`: a model of replication, step by step, under the rules of a Kafka version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, cast

import click

from commands.cli.frame import Frame, command
from commands.cli.options import GIVEN, RULES_OF_VERSION, flag, option
from commands.cli.render import Outcome, Page, Row, epochs
from kctl.rows.replica import EXPLORATION, REPLICA_STATE, SIMULATION, VIOLATION

if TYPE_CHECKING:
    from kctl.replication.rules import ReplicationRules
    from kctl.replication.scenario import Scenario, ScenarioRun, Step


@command(
    "simulate",
    status="0 simulated · 2 not a scenario or version · 3 no such file · 5 random faults broke a guarantee",
)
@click.argument("scenario", required=False, type=GIVEN)
@RULES_OF_VERSION
@option("--compare V,V", "Apply the rules of two versions and show them side by side.")
@option("--random N", "Take N random steps.", into="random_steps", type=click.IntRange(1, 10_000_000))
@option("--seed N", "Seed of the random steps.", type=int, default=1)
@flag("--power-failures", "Let random crashes lose data that is not flushed.")
def simulate(
    frame: Frame,
    scenario: str | None,
    kafka_version: str,
    compare: str | None,
    random_steps: int | None,
    seed: int,
    power_failures: bool,
) -> Outcome:
    """Simulate replication: produce, fetch, crash, restart and elect.

    SCENARIO is a TOML file or one of: high-watermark-loss, high-watermark-divergence, unclean-election,
    power-failure. --random takes random steps and checks the guarantees of the protocol after each.

    $ kctl replica simulate high-watermark-loss --kafka-version 0.10.2
    $ kctl replica simulate high-watermark-divergence --compare 0.10,2.8
    $ kctl replica simulate my-scenario.toml --kafka-version 3.9 --output jsonl
    $ kctl replica simulate --random 10000 --seed 7 --kafka-version 0.10
    """
    from kctl.replication.rules import rules_for
    from kctl.replication.scenario import read_scenario

    versions = [v.strip() for v in compare.split(",")] if compare else [kafka_version]
    if compare and len(versions) != 2:
        raise click.UsageError(f"--compare {compare!r} is not two versions such as 0.10,2.8")
    rules = [rules_for(version) for version in versions]
    if random_steps is not None:
        explored = (_explored(of_version, random_steps, seed, power_failures) for of_version in rules)
        return Outcome((row for rows in explored for row in rows), text=drawn)
    if scenario is None:
        raise click.UsageError("give a SCENARIO, or --random N")
    played = read_scenario(scenario)
    return Outcome((row for of_version in rules for row in _played(played, of_version)), text=drawn)


def _played(scenario: Scenario, rules: ReplicationRules) -> Iterator[Row]:
    from kctl.replication.scenario import play

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


def _states(kafka_version: str, number: int, step: Step | None, note: str, run: ScenarioRun) -> Iterator[Row]:
    part = run.partition
    for broker_id, replica in part.replicas.items():
        role = "leader" if broker_id == part.leader else "follower"
        yield REPLICA_STATE.of(
            replica,
            kafka_version=kafka_version,
            step=number,
            action=str(step) if step else "start",
            note=note or None,
            broker_id=broker_id,
            role="halted" if replica.halted else role if replica.up else "down",
            log=list(replica.log),
            epochs=[list(epoch) for epoch in replica.epochs] if part.rules.has_epochs else None,
            leader_epoch=part.leader_epoch,
            isr=list(part.isr),
        )


def _explored(rules: ReplicationRules, steps: int, seed: int, power_failures: bool) -> Iterator[Row]:
    from kctl.replication.exploration import explore

    counts: dict[str, int] = {}
    for violation in explore(rules, steps=steps, seed=seed, power_failures=power_failures):
        counts[violation.promise] = counts.get(violation.promise, 0) + 1
        yield VIOLATION.of(
            violation,
            kafka_version=rules.kafka_version,
            broker_ids=list(violation.brokers),
            steps=[str(step) for step in violation.steps],
        )
    yield EXPLORATION(
        kafka_version=rules.kafka_version,
        steps=steps,
        seed=seed,
        power_failures=power_failures,
        violations=counts,
    )


def drawn(rows: Iterable[Row], page: Page) -> Iterator[str]:
    """The steps as tables, two versions side by side; then the results."""
    steps: dict[tuple[int, str], dict[str, list[Row]]] = {}
    ends: list[Row] = []
    for row in rows:
        if row["kind"] == "replica_state":
            key = cast(int, row["step"]), str(row["action"])
            steps.setdefault(key, {}).setdefault(str(row["kafka_version"]), []).append(row)
        else:
            ends.append(row)
    versions = list(dict.fromkeys(v for by_version in steps.values() for v in by_version))
    tables = (_table(state) for by_version in steps.values() for state in by_version.values())
    width = max((len(line) for lines in tables for line in lines), default=0)
    if len(versions) > 1:
        yield "".join(f"Kafka {v}".ljust(width + 4) for v in versions).rstrip()
    before: list[list[str]] = []
    for (number, action), by_version in steps.items():
        yield page.style(f"{number:>3}  {action}" if number else "     start", "bold")
        blocks = [_table(by_version[v]) for v in versions]
        for lines in zip(*blocks, strict=True) if blocks != before else ():
            yield "".join(line.ljust(width + 4) for line in lines).rstrip()
        before = blocks
        for version in versions:
            if note := by_version[version][0]["note"]:
                prefix = f"{version}: " if len(versions) > 1 else ""
                yield page.style(f"     {prefix}{note}", "warning")
    for row in ends:
        yield from _ending(row, page)


def _table(rows: list[Row]) -> list[str]:
    lines = []
    longest = max(len(_log(row)) for row in rows)
    for row in rows:
        mark = {"leader": "*", "follower": " ", "down": "-", "halted": "x"}[str(row["role"])]
        shown = "" if row["epochs"] is None else f"  epochs {epochs(row['epochs'])}"
        lines.append(
            f"     {mark}{row['broker_id']}  {_log(row):<{max(longest, 12)}}  LEO {row['log_end_offset']}"
            f"  HW {row['high_watermark']}{shown}"
        )
    return lines


def _log(row: Row) -> str:
    return " ".join(cast("list[str]", row["log"]))


def _ending(row: Row, page: Page) -> Iterator[str]:
    version = f"Kafka {row['kafka_version']}"
    if row["kind"] == "violation":
        names = {"committed_record_lost": "a committed record is lost at offset"}
        statement = names.get(str(row["promise"]), "logs differ below the high watermark at offset")
        yield page.style(f"{version}: {statement} {row['offset']} after", "error")
        yield "    " + "; ".join(cast("list[str]", row["steps"]))
        return
    if row["kind"] == "exploration":
        total = sum(cast("dict[str, int]", row["violations"]).values())
        yield f"{version}: {row['steps']} random steps, seed {row['seed']}: {total} guarantees broken"
        return
    lost, acked = (
        [str(position["record"]) for position in cast("list[dict[str, object]]", row[key])]
        for key in ("lost", "acknowledged_lost")
    )
    diverged = cast("list[dict[str, object]]", row["diverged"])
    yield ""
    yield f"{version}: committed and lost: {', '.join(lost) or 'nothing'}"
    only_acked = [name for name in acked if name not in lost]
    if only_acked:
        yield f"{version}: acknowledged with acks=1 and lost: {', '.join(only_acked)}"
    for divergence in diverged:
        pair = " and ".join(map(str, cast("list[int]", divergence["broker_ids"])))
        yield f"{version}: brokers {pair} hold different records from offset {divergence['from_offset']} on"
