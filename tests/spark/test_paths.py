"""Patterns in the paths of the data source mean what they mean to Spark's own sources."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import fs

from kctl.errors import KctlError
from kctl.spark import paths
from kctl.spark.paths import matches

FOLDERS = (
    "broker-1/data/orders-0", "broker-1/data/orders-1", "broker-1/data/.hidden-0", "broker-2/data/orders-0",
    "broker-2/data/payments-0", "broker-10/data/orders-2", "odd{1}/data/a-0", "odd*/data/b-0",
)  # fmt: skip
# What `FileSystem.globStatus` of Hadoop 3.4 gives for each, of folders; the test of Spark holds that against Hadoop itself.
PATTERNS = {
    "broker-*/data": ["broker-1/data", "broker-10/data", "broker-2/data"],
    "broker-?/data": ["broker-1/data", "broker-2/data"],
    "broker-[12]/data": ["broker-1/data", "broker-2/data"],
    "broker-[0-1]/data/orders-0": ["broker-1/data/orders-0"],
    "broker-[^1]/data": ["broker-2/data"],
    "broker-{1,10}/data": ["broker-1/data", "broker-10/data"],
    "broker-{1,2}/data/{orders,payments}-0": ["broker-1/data/orders-0", "broker-2/data/orders-0", "broker-2/data/payments-0"],
    "{broker-1/data/orders-1,broker-2/data}": ["broker-1/data/orders-1", "broker-2/data"],
    "broker-{1,{2,1{0,1}}}/data": ["broker-1/data", "broker-10/data", "broker-2/data"],
    "broker-1{,0}/data": ["broker-1/data", "broker-10/data"],
    "*/data/*-0": [
        "broker-1/data/.hidden-0", "broker-1/data/orders-0", "broker-2/data/orders-0", "broker-2/data/payments-0",
        "odd*/data/b-0", "odd{1}/data/a-0",
    ],
    r"odd\{1\}/data": ["odd{1}/data"],
    r"odd\*/data": ["odd*/data"],
    "broker-*/*/orders-[1-2]": ["broker-1/data/orders-1", "broker-10/data/orders-2"],
    "broker-1/data": ["broker-1/data"],
    "{,broker-1}/data": ["broker-1/data"],
    "broker-1/{,data}": ["broker-1/data"],
    "broker-{1/data,2/data/}": ["broker-1/data", "broker-2/data"],
    "{broker-1/,broker-2/}/data": ["broker-1/data", "broker-2/data"],
    "{broker-1/data/,broker-{2/,10}}": ["broker-1/data", "broker-10", "broker-2"],
    "broker-{1/,2/}data": ["broker-1/data", "broker-2/data"],
    "broker-{}1/data": ["broker-1/data"],
    "broker-[1,2]/data": ["broker-1/data", "broker-2/data"],
    "broker-[!1]/data": ["broker-2/data"],
    "bro[k]er-?/d*a": ["broker-1/data", "broker-2/data"],
}  # fmt: skip


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    for folder in FOLDERS:
        (root / folder).mkdir(parents=True)
        (root / folder / "00000000000000000000.log").touch()
    return root


@pytest.mark.parametrize("pattern", PATTERNS)
def test_of_local_folders(tree: Path, pattern: str) -> None:
    assert matches(f"{tree}/{pattern}") == [f"{tree}/{match}" for match in PATTERNS[pattern]]
    assert matches(f"file://{tree}/{pattern}")[0].startswith(f"file://{tree}/")


def test_of_the_working_folder(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)
    assert matches("broker-{1,2}/data") == ["broker-1/data", "broker-2/data"]
    assert matches("*-10") == ["broker-10"]


class Flat(fs.SubTreeFileSystem):  # type: ignore[misc]
    """A store that shows no folders, only what is below them, as Google's client does."""

    type_name = "gcs"

    def get_file_info(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        return [info for info in super().get_file_info(selector) if info.type == fs.FileType.File]


@pytest.fixture(params=["s3", "gs"])
def scheme(request: pytest.FixtureRequest, tree: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The tree as a bucket of a store."""
    kind = Flat if request.param == "gs" else fs.SubTreeFileSystem
    opened = kind(str(tree.parent), fs.LocalFileSystem())
    monkeypatch.setattr(paths, "file_system", lambda url: (opened, url.split("/")[2]))
    yield request.param


@pytest.mark.parametrize("pattern", PATTERNS)
def test_of_a_store(tree: Path, scheme: str, pattern: str) -> None:
    bucket = f"{scheme}://{tree.name}"
    expected = [f"{bucket}/{paths._quoted(match)}" for match in PATTERNS[pattern]]
    assert matches(f"{bucket}/{pattern}") == expected
    query = "?endpoint_override=127.0.0.1:9000&scheme=http"
    assert matches(f"{bucket}/{pattern}{query}") == [match + query for match in expected]


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("broker-7*/data", "no folder matches the pattern"),
        ("broker-1/{}", "no folder matches the pattern"),
        ("**/orders-0", "no folder matches the pattern"),
        ("BROKER-*", "no folder matches the pattern"),
        ("broker-(1|2)*", "no folder matches the pattern"),
        ("broker-[1", "no folder matches the pattern"),
        ("broker-{7,8}/data", "no folder matches the pattern"),
        ("broker-*", ""),
        ("*/data/orders-0/*.log", "no folder matches the pattern"),
        ("broker-{1,2/data", "a brace is not closed"),
        ("broker-[2-1]/data", "is no pattern"),
        ("{0,1,2,3,4,5,6,7,8,9}" * 5, "stand for more than 10,000 paths"),
    ],
)
def test_a_pattern_that_matches_nothing_is_an_error(tree: Path, pattern: str, words: str) -> None:
    if not words:
        assert len(matches(f"{tree}/{pattern}")) == 3
        return
    with pytest.raises(KctlError, match=words):
        matches(f"{tree}/{pattern}")


def test_what_exists_as_it_is_written_is_no_pattern(tree: Path) -> None:
    assert matches(f"{tree}/odd{{1}}/data") == [f"{tree}/odd{{1}}/data"]
    assert matches("/no/such/folder") == ["/no/such/folder"], "the listing says that there is none"
    assert os.path.isdir(tree / "odd*")


def test_secrets_are_not_told() -> None:
    with pytest.raises(KctlError) as raised:
        matches("s3://me:hidden@bucket/{a")
    assert "hidden" not in str(raised.value)


@pytest.mark.spark
def test_as_hadoop_matches(tree: Path) -> None:
    from kctl.spark.session import session

    with session("local[1]") as spark:
        hadoop = spark.sparkContext._jvm.org.apache.hadoop.fs
        files = hadoop.FileSystem.getLocal(spark.sparkContext._jsc.hadoopConfiguration())
        for pattern, expected in PATTERNS.items():
            statuses = files.globStatus(hadoop.Path(f"{tree}/{pattern}"))
            assert sorted(
                status.getPath().toUri().getPath().removeprefix(f"{tree}/") for status in statuses or ()
            ) == sorted(expected), pattern
