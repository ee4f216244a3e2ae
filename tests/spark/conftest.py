"""One Spark for all tests of this folder: starting it costs more than what they ask of it."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.corpus import write_index, write_time_index
from formats.compression import Codec
from formats.log.record_batch import Record, write_batch
from tests.conftest import recording

# The JVMs of these tests live for seconds: the optimising compiler would cost more than it gives.
SHORT_LIVED = "-XX:TieredStopAtLevel=1"
os.environ["SPARK_SUBMIT_OPTS"] = os.environ["SPARK_LAUNCHER_OPTS"] = SHORT_LIVED


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A session on `local[2]`, as kctl makes it."""
    from kctl.spark.session import session

    with session("local[2]") as started:
        yield started


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two partitions with an index: one of many small batches, one of few large compressed ones."""
    folder = tmp_path_factory.mktemp("corpus")
    for topic, codec, size, count in (("small", Codec.NONE, 10, 300), ("large", Codec.ZSTD, 100, 40)):
        made = b"".join(
            write_batch(
                [
                    Record(
                        at + n,
                        1_700_000_000_000 + at + n,
                        b"key-%d" % n,
                        bytes(random.Random(at + n).randbytes(90)),
                        (),
                    )
                    for n in range(size)
                ],
                codec=codec,
            )
            for at in range(0, size * count, size)
        )
        log = folder / f"{topic}-0" / f"{0:020d}.log"
        log.parent.mkdir()
        log.write_bytes(made)
        write_index(log, made)
        write_time_index(log, made)
    return folder


@pytest.fixture(scope="session")
def hurt_evidence(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> Path:
    """Recordings of old and new formats and the corpus, damaged here and there."""
    folder = tmp_path_factory.mktemp("hurt")
    for name in ("segments/2.4.1", "segments/0.10.1.1", "incidents/unclean-2.8"):
        shutil.copytree(recording(name), folder / name, symlinks=True)
    shutil.copytree(corpus, folder / "corpus")
    from tests.spark.test_data_source import hurt

    hurt(folder)
    return folder
