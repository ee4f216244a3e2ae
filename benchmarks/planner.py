"""The planner at size: CPU seconds and memory for 25,000, 50,000 and 100,000 partitions on 200 brokers.

    python -m benchmarks.planner

Each plan is made in a process of its own, start-up included. 15 CPU seconds and 500 MiB at most for the largest.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from random import Random

SIZES = (25_000, 50_000, 100_000)
JOBS = ("drain", "even", "add", "replication-factor", "like-kafka", "unequal-racks")
BROKERS, RACKS, PARTITIONS_OF_A_TOPIC = 200, 5, 20
MOST_SECONDS, MOST_MIB = 15, 500


def plan(job: str, size: int) -> str:
    """Make one plan; its cost and how many replicas move."""
    from kctl.cluster.placement import Racks, draw, place_replicas
    from kctl.model import TopicPartition
    from kctl.operations.reassignment.planner import ReassignmentGoal, Situation, plan_placement

    random = Random(1)
    used = 190 if job == "add" else BROKERS
    racks: Racks = {b: f"r{b % RACKS}" for b in range(BROKERS)}
    placed = {b: racks[b] for b in range(used)}
    if job == "unequal-racks":
        racks = {b: "r0" if b < 80 else "r1" if b < 150 else "r2" for b in range(BROKERS)}
    replicas = {
        TopicPartition(f"topic-{number:06d}", partition): found
        for number in range(size // PARTITIONS_OF_A_TOPIC)
        for partition, found in place_replicas(placed, PARTITIONS_OF_A_TOPIC, 3, draw(used, random)).items()
    }
    everyone = frozenset(range(BROKERS))
    goals = {
        "drain": ReassignmentGoal(drain=frozenset({7})),
        "even": ReassignmentGoal(brokers=everyone),
        "add": ReassignmentGoal(add=frozenset(range(190, 200))),
        "replication-factor": ReassignmentGoal(replication_factor=4),
        "unequal-racks": ReassignmentGoal(brokers=everyone),
    }
    now = Situation(replicas=replicas, racks=racks)
    if job == "like-kafka":
        targets = {
            TopicPartition(f"topic-{number:06d}", partition): found
            for number in range(size // PARTITIONS_OF_A_TOPIC)
            for partition, found in place_replicas(
                racks, PARTITIONS_OF_A_TOPIC, 3, draw(used, random)
            ).items()
        }
    else:
        targets = plan_placement(now, goals[job])
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    moves = sum(len(set(target) - set(replicas[tp])) for tp, target in targets.items())
    slow = time.process_time() > MOST_SECONDS or memory > MOST_MIB
    verdict = "SHORT" if slow else "ok"
    return (
        f"{job:20} {size:8,} {time.process_time():7.1f} s {memory:5} MiB {moves:9,} replicas move  {verdict}"
    )


def main() -> None:
    """Every job at every size."""
    if len(sys.argv) == 3:
        print(plan(sys.argv[1], int(sys.argv[2])))
        return
    for job in JOBS:
        for size in SIZES:
            subprocess.run([sys.executable, "-m", "benchmarks.planner", job, str(size)], check=True)


if __name__ == "__main__":
    main()
