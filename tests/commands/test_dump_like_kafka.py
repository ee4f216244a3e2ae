"""`segment dump --format kafka` against what Kafka's own tool printed on recorded files."""

import gzip
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import kctl, recording, recordings

FLAGS = {"--print-data-log": "--records", "--deep-iteration": "--records"}


def runs() -> list[tuple[str, int]]:
    found = []
    for name in recordings("segments"):
        index = recording(name) / "expected" / "index.json"
        if index.exists():
            for number, run in enumerate(json.loads(index.read_text())):
                if run["version"] == "3.9.1" and run["stdout"]:
                    found.append((name, number))
    return found


def blocks(text: str) -> Counter[str]:
    """The blocks of a summary, in any order: Kafka's is that of a hash map."""
    return Counter(re.split(r"(?m)^(?=\S)", text)[1:])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "number"), runs())
def test_the_text_is_that_of_the_recorded_run(
    name: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = recording(name)
    run = json.loads((folder / "expected" / "index.json").read_text())[number]
    expected = gzip.decompress((folder / "expected" / run["stdout"]).read_bytes())
    flags = [FLAGS.get(a, a) for a in run["args"] if a != "--files" and not a.startswith("<")]
    monkeypatch.chdir(folder)
    ran = kctl("segment", "dump", "--format", "kafka", *dict.fromkeys(flags), *run["files"])
    if run["exit"]:
        # Kafka's tool ended with a stack trace; ours goes on behind what it could print.
        assert ran.out.startswith(expected[: expected.rindex(b"\n") + 1])
        assert len(ran.out) > len(expected)
        return
    assert ran.out == expected
    if run["stderr"]:
        recorded = gzip.decompress((folder / "expected" / run["stderr"]).read_bytes()).decode()
        said = ran.err.replace(f"{folder}/", "")
        if "--offsets-decoder" not in flags:
            assert blocks(said) == blocks(recorded)


def of_4_3_0() -> list[Path]:
    folder = recording("segments/4.3.0-kraft") / "expected"
    return sorted(path.relative_to(folder) for path in folder.rglob("*.out.gz"))


DECODERS = {
    "__consumer_offsets": "--offsets-decoder",
    "__transaction_state": "--transaction-log-decoder",
    "__cluster_metadata": "--cluster-metadata-decoder",
    "bootstrap": "--cluster-metadata-decoder",
}
# Kafka 4.3 prints these otherwise than 3.9: it decodes leader changes and records of newer versions, prints
# transactions as JSON, and ends with a stack trace on the untrimmed index of an empty partition. It also knows tagged
# fields of groups that 3.9 passes over (`metadataHash`, `assignmentTimestamp`).
DIFFERENT_IN_4_3_0 = {
    "__consumer_offsets-0/00000000000000000000.log",
    "__consumer_offsets-1/00000000000000000000.log",
    "__cluster_metadata-0/00000000000000000000.log",
    "__transaction_state-0/00000000000000000000.log",
    "__transaction_state-1/00000000000000000000.log",
    "profile.changes-2/00000000000000000000.index",
    "profile.changes-3/00000000000000000000.index",
    "short-lived-0.d84e20fb465a48fa95df3b0f6de79853-delete/00000000000000000000.index",
}


@pytest.mark.parametrize("expected", of_4_3_0(), ids=str)
def test_files_of_4_3_0_agree_but_for_those_named(expected: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = recording("segments/4.3.0-kraft")
    monkeypatch.chdir(folder)
    file = str(expected).removesuffix(".out.gz")
    flags = ["--records"] if file.endswith((".log", ".checkpoint")) else []
    flags += [option for topic, option in DECODERS.items() if flags and file.startswith(topic)]
    ran = kctl("segment", "dump", "--format", "kafka", *flags, f"data-killed/{file}")
    assert ran.status == 0
    agrees = ran.out == gzip.decompress((folder / "expected" / expected).read_bytes())
    assert agrees is (file not in DIFFERENT_IN_4_3_0)


@pytest.mark.parametrize("partition", [0, 1])
def test_groups_that_4_3_0_wrote_are_printed_as_3_9_prints_them(
    partition: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What 3.9's own tool printed of them: it passes over the tagged fields that it does not know."""
    monkeypatch.chdir(recording("segments/4.3.0-kraft"))
    file = f"data-killed/__consumer_offsets-{partition}/00000000000000000000.log"
    ran = kctl("segment", "dump", "--format", "kafka", "--records", "--offsets-decoder", file)
    expected = Path(__file__).parents[1] / "data" / "dump-3.9" / f"__consumer_offsets-{partition}.out.gz"
    assert ran.out == gzip.decompress(expected.read_bytes())
