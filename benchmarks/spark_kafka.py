"""The records of a topic: from the broker's disk by kctl's data source, and from the running broker by Spark's own.

    python -m benchmarks.spark_kafka                     # 10 million records of 100 B, into RESULTS.md
    python -m benchmarks.spark_kafka --records 100000 --print

CPU seconds of Spark's JVM and the Python processes below this one; those of the broker apart. The cost of the same
query over a topic of a hundred records is taken off. Spark's source is fetched by Maven in the version of PySpark.
"""

import argparse
import datetime
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyspark

from benchmarks import results
from benchmarks.kafka_jars import CACHE
from benchmarks.measure import machine
from benchmarks.parts import Line
from benchmarks.spark import NARROW, below, costs_of, thrown_away
from kctl.spark.session import session
from tests.brokers.cluster import Cluster, kraft_cluster
from tests.brokers.jars import classpath
from tests.brokers.processes import java_command

VERSION = "4.3"
PARTITIONS = 4
RUNS = 5
TINY = 100  # records
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>benchmarks</groupId><artifactId>spark-kafka</artifactId><version>1</version><packaging>pom</packaging>
<dependencies><dependency><groupId>org.apache.spark</groupId><artifactId>spark-sql-kafka-0-10_2.13</artifactId>
<version>{version}</version><exclusions><exclusion><groupId>org.apache.hadoop</groupId><artifactId>*</artifactId>
</exclusion></exclusions></dependency></dependencies></project>
"""


def source_jars() -> list[Path]:
    """The jars of Spark's source for Kafka."""
    folder = CACHE / f"spark-kafka-{pyspark.__version__}"
    if not folder.exists():
        pom = CACHE / "pom-spark-kafka" / "pom.xml"
        pom.parent.mkdir(parents=True, exist_ok=True)
        pom.write_text(POM.format(version=pyspark.__version__))
        copy = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
        subprocess.run(["mvn", "-q", "-B", "-f", str(pom), *copy], check=True)
    return sorted(jar for jar in folder.glob("*.jar") if not jar.name.startswith("scala-library"))


def fill(cluster: Cluster, topic: str, records: int) -> None:
    """Make a topic and write records of 100 bytes to it with Kafka's own producer."""
    tool = partial(java_command, classpath(VERSION), heap="512m", flags=("-Dlog4j.rootLogger=WARN",))
    made = ["--create", "--topic", topic, "--partitions", PARTITIONS, "--bootstrap-server", cluster.bootstrap]
    subprocess.run(tool("org.apache.kafka.tools.TopicCommand", made), check=True, capture_output=True)
    settings = [f"bootstrap.servers={cluster.bootstrap}", "linger.ms=20", "batch.size=16384"]
    sent = ["--topic", topic, "--num-records", records, "--record-size", 100, "--throughput", -1]
    sent += ["--producer-props", *settings]
    subprocess.run(tool("org.apache.kafka.tools.ProducerPerformance", sent), check=True, capture_output=True)


def from_broker(spark: Any, cluster: Cluster, topic: str) -> Any:
    """The topic by Spark's source."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", cluster.bootstrap)
    frame = reader.option("subscribe", topic).option("startingOffsets", "earliest").load()
    sizes = ["length(key) AS key_size", "length(value) AS value_size"]
    return frame.selectExpr("offset", "unix_millis(timestamp) AS timestamp", *sizes)


def from_disk(spark: Any, cluster: Cluster, topic: str) -> Any:
    """The topic by kctl's, from the broker's log directory."""
    folder = cluster.brokers[1].folder / "data"
    reader = spark.read.format("kafka-segments").option("table", "records")
    reader = reader.schema(", ".join(f"{name} bigint" for name in NARROW))
    return reader.load(str(folder / f"{topic}-*"))


def measured(records: int) -> Iterator[Line]:
    """Both, one after the other on one session."""
    settings = {"spark.jars": ",".join(map(str, source_jars()))}
    with kraft_cluster(VERSION, 1) as cluster, session("local[2]", settings=settings) as spark:
        for topic, count in (("orders", records), ("tiny", TINY)):
            fill(cluster, topic, count)
        process = cluster.brokers[1].process
        assert process
        broker = process.process.pid

        def spark_alone() -> dict[int, float]:
            return {pid: seconds for pid, seconds in below().items() if pid != broker}

        def broker_alone() -> dict[int, float]:
            return {broker: below()[broker]}

        cost = {}
        for name, source in (("broker", from_broker), ("disk", from_disk)):
            assert source(spark, cluster, "orders").count() == records
            whole, tiny = (
                partial(thrown_away, source(spark, cluster, topic)) for topic in ("orders", "tiny")
            )
            cost[name] = min(costs_of(whole, spark_alone, RUNS)) - min(costs_of(tiny, spark_alone, RUNS))
            of_broker = min(costs_of(whole, broker_alone, 2))
            rate = records / cost[name] / 1e6
            said = (
                f"{rate:.2f} million records a CPU second of Spark; {of_broker:.1f} s of the broker besides"
            )
            yield Line(f"offset, timestamp and sizes of {records:,} records, from the {name}", said)
        yield Line(
            "Spark's CPU for its Kafka source against that for kctl's", f"{cost['broker'] / cost['disk']:.2f}"
        )


def main() -> None:
    """Measure both."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--records", type=int, default=10_000_000)
    arguments.add_argument("--print", action="store_true", help="do not write RESULTS.md")
    given = arguments.parse_args()
    lines = []
    for line in measured(given.records):
        lines.append(line)
        print(results.shown(line), flush=True)
    if not given.print:
        today = datetime.datetime.now(datetime.UTC).date()
        head = f"Measured {today} by `python -m benchmarks.spark_kafka` on {machine()}; PySpark {pyspark.__version__}, Kafka {VERSION}."
        said = " ".join((__doc__ or "")[(__doc__ or "").index("CPU seconds") :].split())
        results.write_section("spark-kafka", f"{head} {said}\n\n{results.table(lines)}")


if __name__ == "__main__":
    main()
