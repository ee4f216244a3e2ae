"""Exports of evidence, differences between exports, and the schema of files."""

from __future__ import annotations

import base64
import json
import os
import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from commands.cluster_file import apply as apply_module
from kctl.cluster_file.difference import Changed, Drift
from kctl.cluster_file.resources import Resource
from tests.conftest import Ran, kctl, recording, rows
from tests.kctl.cluster_file.test_bad_files import BAD

SCHEMA = json.loads(kctl("schema", "apply", "--files").out)
KRAFT, ZOOKEEPER = "segments/3.9.1-kraft", "incidents/unclean-2.8"


def evidence(name: str) -> tuple[Path, list[str]]:
    """A recording, and the options that export it."""
    folder = recording(name)
    if name == KRAFT:
        return folder, ["--metadata", str(next(folder.rglob("__cluster_metadata-0")))]
    export = sorted(folder.rglob("znodes*.jsonl"))[-1]
    return export, ["--snapshot", str(export)]


@pytest.mark.slow
@pytest.mark.parametrize("name", [KRAFT, ZOOKEEPER])
def test_an_export_asks_for_what_the_evidence_has(name: str, tmp_path: Path) -> None:
    place, options = evidence(name)
    text = kctl("export", *options).out.decode()
    assert "topics:\n" in text and "__consumer_offsets" not in text
    jsonschema.validate(yaml.safe_load(text), SCHEMA)
    for suffix in ("yaml", "json"):
        file = tmp_path / f"cluster.{suffix}"
        assert kctl("export", *options, "--to", file).out.decode() == f"{file}\n"
        ran = rows("diff", file, "--against", place, "--whole", "--exit-code")
        assert (ran.status, ran.rows) == (0, []), ran.err
    assert (tmp_path / "cluster.yaml").read_text() == text
    jsonschema.validate(json.loads((tmp_path / "cluster.json").read_text()), SCHEMA)


@pytest.mark.parametrize("name", [KRAFT, ZOOKEEPER])
def test_replicas_and_placement_are_compared_with_evidence(name: str, tmp_path: Path) -> None:
    place, options = evidence(name)
    topics = yaml.safe_load(kctl("export", *options).out)["topics"]
    topic, (partitions, factor) = next(
        (topic, (body["partitions"], body["replication_factor"])) for topic, body in topics.items()
    )
    file = tmp_path / "cluster.yaml"
    file.write_text(f"topics: {{{topic}: {{replicas: '9', placement: racks}}}}")
    rows_of = {row["field"]: row for row in rows("diff", file, "--against", place).rows}
    present = rows_of["replicas"]["present"]
    assert [len(ids.split(":")) for ids in present.split(",")] == [factor] * partitions
    used = ",".join(sorted({id for ids in present.split(",") for id in ids.split(":")}, key=int))
    for placement, differs in ((f"brokers {used}", False), ("brokers 99", True)):
        file.write_text(f"topics: {{{topic}: {{replicas: '{present}', placement: '{placement}'}}}}")
        changed = [r for r in rows("diff", file, "--against", place).rows if r["action"] == "change"]
        assert [(r["field"], r["present"]) for r in changed] == [("placement", f"brokers {used}")] * differs


def test_patterns_and_kinds(tmp_path: Path) -> None:
    _, options = evidence(ZOOKEEPER)
    document = yaml.safe_load(kctl("export", *options, "--topics", "led*", "--kinds", "topics,acls").out)
    assert list(document) == ["kctl", "topics"] and list(document["topics"]) == ["ledger"]
    ran = kctl("export", *options, "--kinds", "topic")
    assert ran.status == 2 and "did you mean topics?" in ran.err


def files(folder: Path) -> tuple[Path, Path]:
    one, other = folder / "one.yaml", folder / "other.yaml"
    one.write_text("topics:\n  a: {partitions: 2, configs: {x: 'a|b'}}\n  n: {partitions: 1}\n")
    other.write_text("topics: {a: {partitions: 1, configs: {y: 1}}, z: {partitions: 1}}\n")
    return one, other


def test_two_exports_beside_each_other(tmp_path: Path) -> None:
    one, other = files(tmp_path)
    ran = rows("diff", one, "--against", other, "--exit-code")
    assert ran.status == 5
    told = [(r["name"], r["field"], r["present"], r["desired"], r["action"], r["line"]) for r in ran.rows]
    assert told == [
        ("a", "partitions", 1, 2, "change", 2),
        ("a", "x", None, "a|b", "change", 2),
        ("a", "y", "1", None, "none", None),
        ("n", None, None, "present", "create", 3),
        ("n", "partitions", None, 1, "create", 3),
    ]
    ran = rows("diff", one, "--against", other, "--whole")
    assert ran.status == 0
    assert [(r["name"], r["field"]) for r in ran.rows if r["action"] == "delete"] == [("a", "y"), ("z", None)]


def test_only_what_stays_is_no_drift(tmp_path: Path) -> None:
    one, other = files(tmp_path)
    one.write_text("topics: {a: {partitions: 1}}\n")
    ran = rows("diff", one, "--against", other, "--exit-code")
    assert ran.status == 0 and [r["action"] for r in ran.rows] == ["none"]


def test_markdown_shows_nothing_as_markup(tmp_path: Path) -> None:
    one, other = files(tmp_path)
    lines = kctl("diff", one, "--against", other, "--markdown").out.decode().splitlines()
    assert lines[1] == "|---|---|---|---|---|---|"
    (line,) = (line for line in lines if "a\\|b" in line)
    assert len(re.findall(r"(?<!\\)\|", line)) == 7
    ran = kctl("diff", one, "--against", one, "--markdown")
    assert ran.out.decode() == "nothing differs: 2 resources as the files ask\n"


def test_on_a_terminal_each_resource_has_a_heading(tmp_path: Path) -> None:
    one, other = files(tmp_path)
    text = kctl("diff", one, "--against", other, "--color", "never", columns=100).out.decode()
    assert text.splitlines() == [
        f"~ topic a   {one}:2",
        f"    partitions  1 -> 2   {one}:2",
        f"    x           (not set) -> a|b   {one}:2",
        "    y           1, not in the files: it stays",
        f"+ topic n   {one}:3",
        "    partitions  1",
    ]


def test_a_bad_file_ends_with_2(tmp_path: Path) -> None:
    text, line, what, hint = BAD["misspelt key"]
    bad = tmp_path / "bad.yaml"
    bad.write_text(text)
    for command in ("diff", "apply"):
        ran = kctl(command, bad, "--bootstrap-server", "127.0.0.1:1")
        assert ran.status == 2
        assert ran.errors == [f"kctl: {bad}:{line}: {what}; {hint}?"]


def test_the_schema_refuses_what_the_reader_refuses() -> None:
    """Not all of it: names, numbers in relation and files are beyond a schema."""
    validator, refused = jsonschema.Draft202012Validator(SCHEMA), 0
    for text, *_ in BAD.values():
        try:
            document = yaml.safe_load(text)
        except (yaml.YAMLError, ValueError):
            continue
        refused += not validator.is_valid(document)
    assert refused >= 30


def test_other_commands_have_no_files() -> None:
    ran = kctl("schema", "topic", "list", "--files")
    assert ran.status == 2 and "reads no file of this kind" in ran.err


def test_evidence_of_several_clusters_is_refused(tmp_path: Path) -> None:
    export, options = evidence(ZOOKEEPER)
    wanted = tmp_path / "cluster.yaml"
    kctl("export", *options, "--to", wanted)
    text = export.read_text()
    node = next(json.loads(line) for line in text.splitlines() if '"/cluster/id"' in line)
    other_data = base64.b64encode(b'{"version":"1","id":"AAAAAAAAAAAAAAAAAAAAAA"}').decode()
    for name, each in {"a": text, "b": text.replace(node["data"], other_data)}.items():
        (tmp_path / "two" / name).mkdir(parents=True)
        (tmp_path / "two" / name / "znodes.jsonl").write_text(each)
    ran = kctl("diff", wanted, "--against", tmp_path / "two")
    assert ran.status == 2 and ran.out == b""
    cluster_id = json.loads(base64.b64decode(node["data"]))["id"]
    assert f"the evidence is of 2 clusters: AAAAAAAAAAAAAAAAAAAAAA, {cluster_id}" in ran.err
    assert kctl("diff", wanted, "--against", tmp_path / "two" / "a").status == 0


def test_evidence_of_several_moments_is_compared_with_the_last(tmp_path: Path) -> None:
    folder = recording(ZOOKEEPER)
    wanted = tmp_path / "cluster.yaml"
    kctl("export", "--snapshot", folder / "moments" / "after" / "znodes.jsonl", "--to", wanted)
    ran = kctl("diff", wanted, "--against", folder, "--whole")
    assert ran.status == 0
    assert ran.err.count("compared with after, the last of the moments ") == 1, ran.err
    assert "moments" not in kctl("diff", wanted, "--against", folder / "moments" / "after").err


def test_one_source_at_a_time(tmp_path: Path) -> None:
    place, options = evidence(ZOOKEEPER)
    wanted = tmp_path / "cluster.yaml"
    kctl("export", *options, "--to", wanted)
    ran = kctl("diff", wanted, "--against", place, *options)
    assert ran.status == 2 and "give one of --against and --snapshot" in ran.err
    ran = kctl("export", *options, *evidence(KRAFT)[1])
    assert ran.status == 2 and "give one of --snapshot and --metadata" in ran.err
    ran = kctl("export", *options, "--from", "kafka-topics", wanted)
    assert ran.status == 2 and "give one of --snapshot and --from" in ran.err


def exported(folder: Path, *options: object) -> Ran:
    return kctl("export", *evidence(ZOOKEEPER)[1], "--to", folder, *options)


def test_what_is_there_is_replaced_only_when_asked_to(tmp_path: Path) -> None:
    for name in ("cluster", "cluster.yaml"):
        assert exported(tmp_path / name).status == 0
        ran = exported(tmp_path / name)
        assert ran.status == 4 and "give --replace" in ran.err
        assert exported(tmp_path / name, "--replace").status == 0
    ran = kctl("export", *evidence(ZOOKEEPER)[1], "--replace")
    assert ran.status == 2 and "--replace goes with --to" in ran.err


def test_a_file_of_a_kind_that_is_gone_leaves_with_the_next_export(tmp_path: Path) -> None:
    stale = tmp_path / "quotas.yaml"
    text = "# noted\nkctl: 1\nquotas:\n  - user: app\n    producer_byte_rate: 1\n"
    stale.write_text(text)
    (tmp_path / "README.md").write_text("ours")
    assert exported(tmp_path).status == 4 and stale.read_text() == text
    assert exported(tmp_path, "--replace", "--kinds", "topics").status == 0
    assert stale.read_text() == text, "of another kind than those exported"
    ran = exported(tmp_path, "--replace")
    assert ran.status == 0 and f"{stale} was removed" in ran.err
    assert sorted(os.listdir(tmp_path)) == ["README.md", "topics.yaml"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("quotas.yaml", "kctl: 1\nvariables: {a: b}\nquotas:\n  - {user: app, producer_byte_rate: 1}\n"),
        ("mine.yaml", "kctl: 1\nquotas:\n  - {user: app, producer_byte_rate: 1}\n"),
        ("topics.json", "{}"),
    ],
)
def test_a_file_that_no_export_wrote_stays(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    ran = exported(tmp_path, "--replace")
    assert ran.status == 4 and f"{name}: no export wrote it" in ran.err
    assert os.listdir(tmp_path) == [name] and (tmp_path / name).read_text() == text


@pytest.mark.parametrize("name", ["cl.YAML", "cl.yml", "cl.Json"])
def test_endings_of_files_in_any_letters(name: str, tmp_path: Path) -> None:
    assert exported(tmp_path / name).status == 0
    file = tmp_path / name
    assert file.is_file() and file.read_text().startswith("{" if name.endswith("Json") else "kctl: 1\n")
    assert rows("diff", file, "--against", file, "--whole", "--exit-code").status == 0
    assert rows("diff", tmp_path, "--against", tmp_path, "--whole", "--exit-code").status == 0


def test_a_folder_of_json(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    assert exported(folder).status == 0
    ran = exported(folder, "--output", "json", "--replace")
    assert ran.status == 0 and "topics.yaml was removed: the export is in another form" in ran.err
    assert os.listdir(folder) == ["topics.json"]
    jsonschema.validate(json.loads((folder / "topics.json").read_text()), SCHEMA)
    place, _ = evidence(ZOOKEEPER)
    assert rows("diff", folder, "--against", place, "--whole", "--exit-code").status == 0
    assert exported(folder, "--output", "jsonl").status == 4
    (folder / "quotas.json").write_text('{"kctl": 1, "quotas": [{"user": "a", "producer_byte_rate": 1}]}')
    assert exported(folder, "--replace").status == 0
    assert os.listdir(folder) == ["topics.yaml"]
    ran = exported(tmp_path / "cluster.yaml", "--output", "json")
    assert ran.status == 2 and "cluster.yaml: .yaml is of YAML, and the output asked for is JSON" in ran.err
    assert "name cluster.json" in ran.err and not (tmp_path / "cluster.yaml").exists()


def test_another_ending_is_no_folder(tmp_path: Path) -> None:
    ran = exported(tmp_path / "cl.txt")
    assert ran.status == 2 and "cl.txt: .txt is no ending of YAML or JSON" in ran.err
    assert not os.listdir(tmp_path)
    assert kctl("export", *evidence(ZOOKEEPER)[1], "--to", f"{tmp_path}/v1.2/").status == 0
    assert os.listdir(tmp_path / "v1.2") == ["topics.yaml"]


def test_a_pattern_that_no_topic_matches_is_an_error(tmp_path: Path) -> None:
    ran = exported(tmp_path / "cl.yaml", "--topics", "led*", "--topics", "nosuch*")
    assert ran.status == 3 and "no topic matches 'nosuch*'\n      there are ledger\n" in ran.err
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    ("bound", "status", "message"),
    [
        ("0", 2, "nothing of the cluster is recorded before --as-of: the log begins with offset 0 at 20"),
        ("2010-01-01T00:00Z", 2, "the log begins with offset 0 at 20"),
        ("99999999", 2, "--as-of is offset 99,999,999, and the log ends with offset "),
        ("2200-01-01T00:00Z", 0, "before --as-of: what came after it is not known"),
        ("100", 0, ""),
    ],
)
def test_a_bound_that_is_not_in_the_log(bound: str, status: int, message: str) -> None:
    ran = kctl("export", *evidence(KRAFT)[1], "--as-of", bound)
    assert ran.status == status and message in ran.err, ran.err
    assert bool(ran.err) is bool(message) and bool(ran.out) is not bool(status)


def test_an_empty_snapshot_is_said_to_be_empty(tmp_path: Path) -> None:
    (tmp_path / "znodes.jsonl").touch()
    ran = kctl("export", "--snapshot", tmp_path / "znodes.jsonl")
    assert ran.status == 3 and "the file is empty" in ran.err and "chroot" not in ran.err


def compared(folder: Path, text: str, *options: object) -> Ran:
    wanted = folder / "wanted.yaml"
    wanted.write_text(text)
    return kctl("diff", wanted, "--against", evidence(ZOOKEEPER)[0], *options)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", (), "wanted.yaml:1: the file is empty\n"),
        ("topics:\n  ledger:\n", ("--set", "unused=1"), "no file uses ${unused}, to which --set gives a value\n"),
        ("topics:\n  ledger: {configs: {retention.ms: 4d}}", (), ":2: retention.ms=4d: not a whole number\n"),
        ("topics:\n  a: {configs: {cleanup.policy: compactt}}", (), ":2: cleanup.policy=compactt: 'compactt' is"),
        ("defaults: {topics: {'*': {configs: {segment.bytes: 1}}}}\ntopics:", (), ":1: segment.bytes=1: smaller"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_an_error(
    text: str, options: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    ran = compared(tmp_path, text, *options)
    assert ran.status == 2 and message in ran.err, ran.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("manage: {topics: al}", "wanted.yaml:1: manage: no topic matches 'al'; did you mean all?"),
        ("topics:\n  ledger: {configs: {retention.mss: 4}}", ":2: retention.mss: kctl knows no such configuration of "
         "topics; did you mean retention.ms"),
        ("topics:\n  ledger: {configs: {of.kafka.99: 4}}", "no such configuration of topics; brokers that do not"),
        ("topics:\n  ledger: {partitions: 2}", ":2: topic ledger has 3 partitions, of which Kafka takes none away; "
         "write `partitions: 3` or more"),
        ("topics:\n  ledger: {replication_factor: 4}", ":2: topic ledger is to have 4 replicas, with "),
        ("topics:\n  n: {replication_factor: 99}", ":2: topic n is to have 99 replicas, with "),
    ],
)  # fmt: skip
def test_what_is_hardly_meant_is_noted(text: str, message: str, tmp_path: Path) -> None:
    ran = compared(tmp_path, text)
    assert ran.status == 0 and message in ran.err and ran.err.count("warning: ") == 1, ran.err


@pytest.mark.parametrize(
    "text",
    [
        "manage: {topics: led*, acls: all}\ntopics: {ledger: }",
        "topics: {ledger: {partitions: 5, configs: {cleanup.policy: [], remote.log.copy.disable: true, flush.ms: null}}}",
        "variables: {a: b}\ntopics: {ledger: {configs: {segment.ms: 0, retention.bytes: -2, retention.ms: '${t}'}}}",
    ],
)
def test_what_may_be_meant_is_not_noted(text: str, tmp_path: Path) -> None:
    ran = compared(tmp_path, text, *(("--set", "a=c", "--set", "t=7") if "${t}" in text else ()))
    assert ran.status == 0 and "warning" not in ran.err, ran.err


def test_a_broker_that_is_down_is_counted(tmp_path: Path) -> None:
    wanted = tmp_path / "wanted.yaml"
    during = recording(ZOOKEEPER) / "moments" / "during" / "znodes.jsonl"
    for factor, warnings in ((3, 0), (4, 1)):
        wanted.write_text(f"topics: {{ledger: {{replication_factor: {factor}}}}}")
        for option in ("--snapshot", "--against"):
            ran = kctl("diff", wanted, option, during)
            assert ran.status == 0 and ran.err.count("replicas, with 3 brokers known") == warnings, ran.err


def test_the_users_that_kctl_and_brokers_connect_as_are_not_lost_unasked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def losing(name: str, mechanisms: dict[str, str], left: dict[str, str | None]) -> Changed:
        present = Resource(kind="user", name=name, fields=dict(mechanisms))
        desired = Resource(kind="user", name=name, fields=dict(left))
        drifts = tuple(Drift("user", name, key, mechanisms[key], None, None, "change") for key in left)
        return Changed("change", present, desired, drifts)

    monkeypatch.setattr(apply_module, "connected_as", lambda cluster: ("User:admin", "User:broker"))
    changed = [
        losing(name, {"SCRAM-SHA-256": "4096"}, {"SCRAM-SHA-256": None})
        for name in ("admin", "broker", "app")
    ]
    sentences = list(apply_module.locked_out(*(None,) * 3, changed))  # type: ignore[arg-type]
    assert sentences == [
        "kctl connects as User:admin, whose credentials would be gone",
        "brokers connect as User:broker, whose credentials would be gone",
    ]
    assert list(apply_module.locked_out(*(None,) * 3, [])) == []  # type: ignore[arg-type]


def test_both_sides_of_a_diff_have_the_variables_that_are_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SITE", "eu")
    texts = {"staging": "orders", "production": "${team}"}
    files = {name: tmp_path / f"{name}.yaml" for name in texts}
    for name, team in texts.items():
        files[name].write_text(
            f'topics: {{"{team}-${{env:SITE}}": {{partitions: 1, replication_factor: 1, configs: {{segment.ms: null}}}}}}\n'
        )
    ask = ("diff", files["staging"], "--against", files["production"], "--whole", "--exit-code")
    assert kctl(*ask, "--set", "team=orders").status == 0
    assert kctl(*ask, "--set", "team=payments").status == 5
    # What is to have its default is as what is not there.
    files["production"].write_text("topics: {orders-eu: {partitions: 1, replication_factor: 1}}\n")
    assert kctl(*ask).status == 0
    files["staging"], files["production"] = files["production"], files["staging"]
    ask = ("diff", files["staging"], "--against", files["production"], "--whole", "--exit-code")
    assert kctl(*ask).status == 0
