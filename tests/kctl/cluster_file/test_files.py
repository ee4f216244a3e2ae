"""Files to what they ask for, and back: includes, variables, defaults, and a text that every reader takes alike."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from commands.cli.render import Page
from commands.cluster_file.compare import drift_text
from formats.values import replace
from kctl.access.acl import OPERATIONS_OF, Acl
from kctl.access.quotas import QUOTA_NAMES
from kctl.access.view import RULES
from kctl.cluster.rights import MissingRight, Right
from kctl.cluster.state import DEFAULT, Broker, ClusterState, Problem, unread
from kctl.cluster.versions import KafkaVersion
from kctl.cluster_file.acceptable import REFUSALS
from kctl.cluster_file.difference import CHANGE, CREATE, DELETE, NONE, differences
from kctl.cluster_file.document import Node, Scalar, parse_documents
from kctl.cluster_file.loading import load
from kctl.cluster_file.planning import WITH_CONFIG, deletions
from kctl.cluster_file.present import Present, remarks_of
from kctl.cluster_file.resources import KINDS, SECTIONS, Key, Resource, Wanted, by_key, shape_of
from kctl.cluster_file.schema import file_schema
from kctl.cluster_file.sections import READERS, acl_resource, quota_resource
from kctl.cluster_file.writing import Target, document_of, json_text, scalar, write_document, yaml_lines
from kctl.errors import BadValue
from kctl.rows.changes import DRIFT
from tests.conftest import rows

NAMES = st.text("abcXYZ019._-", min_size=1, max_size=12).filter(lambda name: name not in (".", ".."))
VALUES = st.text(min_size=0, max_size=20)
KEYS = st.text("abc.", min_size=1, max_size=12).filter(lambda key: key != ".")
CONFIGS = st.dictionaries(KEYS, VALUES, max_size=3)
SOMEBODY = st.one_of(st.just(DEFAULT), st.text("ab %&é-", min_size=1, max_size=5))


@st.composite
def topics(draw: st.DrawFn) -> Resource:
    shape = {"partitions": draw(st.integers(1, 99)), "replication_factor": draw(st.integers(1, 5))}
    return Resource(kind="topic", name=draw(NAMES), fields={**shape, **draw(CONFIGS)})


@st.composite
def quotas(draw: st.DrawFn) -> Resource:
    numbers = st.one_of(st.integers(0, 2**40).map(str), st.just("0.5"))
    fields = draw(st.dictionaries(st.sampled_from(QUOTA_NAMES), numbers, min_size=1, max_size=3))
    user, client_id = draw(st.one_of(st.none(), SOMEBODY)), draw(SOMEBODY)
    return quota_resource(user, client_id, None, fields)


@st.composite
def acls(draw: st.DrawFn) -> Resource:
    kind = draw(st.sampled_from([kind for kind in OPERATIONS_OF if kind != "cluster"]))
    return acl_resource(
        Acl(
            kind, draw(st.text(min_size=1, max_size=9)), draw(st.sampled_from(["literal", "prefixed"])),
            f"User:{draw(NAMES)}", draw(st.sampled_from(["*", "10.0.0.1"])), draw(st.sampled_from(OPERATIONS_OF[kind])),
            draw(st.sampled_from(["allow", "deny"])),
        )
    )  # fmt: skip


USERS = st.builds(
    lambda name, count: Resource(kind="user", name=name, fields={"SCRAM-SHA-512": count}),
    NAMES,
    st.integers(4096, 16384),
)
BROKERS = st.builds(
    lambda name, fields: Resource(kind="broker", name=name, fields=fields),
    st.sampled_from([DEFAULT, "1", "12"]),
    CONFIGS.filter(bool),
)
RESOURCES = st.lists(st.one_of(topics(), quotas(), acls(), USERS, BROKERS), max_size=8).map(by_key)


def what(resources: dict[Key, Resource]) -> list[tuple[Key, dict[str, object]]]:
    return [
        (key, {name: str(value) for name, value in resource.fields.items()})
        for key, resource in resources.items()
    ]


@pytest.mark.slow
@given(RESOURCES)
def test_what_is_written_asks_for_the_same(resources: dict[Key, Resource]) -> None:
    for suffix in (".yaml", ".json"):
        document = document_of(resources.values())
        text = json_text(document) if suffix == ".json" else "\n".join(yaml_lines(document, ["a head"]))
        wanted = _load_text(text)
        assert what(dict(wanted.resources)) == what(resources)
        assert list(differences(wanted, resources)) == []


def _load_text(text: str) -> Wanted:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cluster.yaml"
        path.write_text(text, encoding="utf-8")
        return load([path], {}, {})


@given(st.text(max_size=30))
@example("\U0010ffff\U000e0001 \x7f\x85\u2028\ufeff\n\U0001f600")
def test_a_value_is_text_to_every_reader(text: str) -> None:
    """What kctl writes it reads back as it was, and another reader takes it for text or for a number."""
    (node,) = parse_documents(f"a: {scalar(text)}\n".encode(), "f")
    assert _only(node) == text
    value = yaml.safe_load(f"a: {scalar(text)}\n")["a"]
    assert isinstance(value, (str, int, float)), value
    assert str(value).lower() == text.lower() or isinstance(value, float)


@given(st.text(max_size=30))
def test_a_comment_is_nothing_else(text: str) -> None:
    lines = [*yaml_lines({"kctl": 1, "topics": {"a": {}}}, [text], {"topics": [text], "topics/a": [text]})]
    assert yaml.safe_load("\n".join(lines)) == {"kctl": 1, "topics": {"a": {}}}


def _only(node: Node) -> str:
    assert not isinstance(node, Scalar)
    (value,) = node.entries.values()  # type: ignore[union-attr]
    assert isinstance(value, Scalar)
    return value.text


def load_files(folder: Path, **files: str) -> Wanted:
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)
    return load(
        [folder / "main.yaml"], {"region": "eu"} if "region" in files["main"] else {}, {"TEAM": "alpha"}
    )


def test_includes_variables_and_defaults(tmp_path: Path) -> None:
    wanted = load_files(
        tmp_path,
        main="""
include: [common.yaml]
variables: {size: 6, name: "${env:TEAM}-${region}"}
topics:
  ${name}-orders: {partitions: "${size}", configs: {b: own, text: "$${kept}"}}
  other: {partitions: 1}
labels: {owner: [anything, {goes: here}]}
""",
        common="""
variables: {size: 3, region: us}
defaults:
  topics:
    "*": {replication_factor: 2, partitions: 9, configs: {a: first, b: first}}
    "alpha-*": {configs: {b: second, c: second}}
""",
    )
    orders = wanted.resources[Key("topic", "alpha-eu-orders")]
    assert orders.fields == {
        "partitions": 3, "replication_factor": 2, "a": "first", "b": "own", "c": "second", "text": "${kept}",
    }  # fmt: skip
    assert str(orders.place_of("c")).endswith("common.yaml:6")
    assert str(orders.place_of("b")).endswith("main.yaml:5")
    assert str(orders.place).endswith("main.yaml:5")
    assert wanted.resources[Key("topic", "other")].fields["partitions"] == 1


@pytest.mark.parametrize(
    ("default", "own", "fields"),
    [
        ("replicas: '1:2,2:1'", "partitions: 3, replication_factor: 1", {"partitions": 3, "replication_factor": 1}),
        ("replicas: '1:2,2:1'", "partitions: 3", {"partitions": 3}),
        ("replicas: '1:2,2:1'", "replication_factor: 1", {"replication_factor": 1}),
        ("replicas: '1:2,2:1'", "placement: racks", {"replicas": "1:2,2:1", "placement": "racks"}),
        ("partitions: 3, replication_factor: 1", "replicas: '1:2,2:1'", {"replicas": "1:2,2:1"}),
    ],
)  # fmt: skip
def test_replicas_and_their_numbers_never_stand_beside_each_other(
    tmp_path: Path, default: str, own: str, fields: dict[str, object]
) -> None:
    wanted = load_files(
        tmp_path, main=f"defaults: {{topics: {{'*': {{{default}}}}}}}\ntopics: {{a: {{{own}}}}}"
    )
    assert wanted.resources[Key("topic", "a")].fields == fields


def test_labels_are_not_looked_at(tmp_path: Path) -> None:
    """What they refer to need not be there; a variable that they alone use may be given."""
    wanted = load_files(
        tmp_path,
        main="""
labels: {who: "${nobody}", env: "${env:NOT_THERE}"}
defaults: {topics: {'*': {labels: [{x: "${nobody}"}], configs: {a: 1}}}}
topics:
  labels: {partitions: 1, labels: {owner: "${region}", ticket: "${nobody}"}}
users: {labels: {mechanisms: SCRAM-SHA-512, labels: "${nobody}"}}
quotas: [{user: labels, producer_byte_rate: 1, labels: "${nobody}"}]
acls: [{principals: User:labels, topic: labels, operations: read, labels: {a: ["${nobody}"]}}]
""",
    )
    assert [(key.kind, key.name) for key in wanted.resources] == [
        ("user", "labels"), ("topic", "labels"), ("quota", "user=labels"),
        ("acl", "allow User:labels read on topic labels"),
    ]  # fmt: skip
    assert wanted.resources[Key("topic", "labels")].fields == {"partitions": 1, "a": "1"}


UNEVEN = Resource(
    kind="topic", name="u", fields={**shape_of({0: (1, 2), 1: (2, 3, 1), 2: (3, 1)}), "retention.ms": "5"}
)


def test_another_number_of_replicas_is_seen_in_any_partition(tmp_path: Path) -> None:
    assert shape_of({1: (1,), 0: (2,)}) == {"partitions": 2, "replication_factor": 1}
    many = shape_of({p: (1,) if p else (1, 2) for p in range(12)})
    assert many["replication_factor"] == "2, but 1 of partitions 1, 2, 3, 4, 5, 6, 7, 8 and 3 more"
    (row,) = (row for each in differences(wanted_of("topics: {u: {replication_factor: 2}}"), {UNEVEN.key: UNEVEN})
              for row in each.drifts if row.action != NONE)  # fmt: skip
    assert (row.field, row.present, row.desired) == ("replication_factor", "2, but 3 of partition 1", 2)
    comments = remarks_of([UNEVEN, Resource(kind="topic", name="even", fields=shape_of({0: (1,)}))])
    assert list(comments) == ["topics/u"]
    document = document_of([UNEVEN])
    for name, text in (
        ("a.yaml", "\n".join(yaml_lines(document, (), comments))),
        ("a.json", json_text(document, (), comments)),
    ):
        file = tmp_path / name
        file.write_text(text)
        assert "replication_factor 2, but 3 of partition 1: not all partitions have as many replicas" in text
        wanted = load([file], {}, {})
        assert wanted.resources[UNEVEN.key].fields == {"replicas": "1:2,2:3:1,3:1", "retention.ms": "5"}
        assert list(differences(wanted, {UNEVEN.key: UNEVEN})) == []
        ran = (
            rows("diff", file, "--against", tmp_path, "--whole")
            if name == "a.yaml"
            else rows("diff", file, "--against", file)
        )
        assert (ran.status, ran.rows) == (0, []), ran.err


def test_json_has_remarks_where_yaml_has_comments() -> None:
    document = document_of(PRESENT.values())
    remarks = {"topics": ["of all"], "topics/old": ["of one", "and more"], "topics/gone": ["of none"]}
    written = json.loads(json_text(document, ["a head"], remarks))
    assert written["labels"] == {"remarks": ["a head", "of all"]}
    assert written["topics"]["old"]["labels"] == {"remarks": ["of one", "and more"]}
    assert "labels" not in written["topics"]["orders"]
    wanted = _load_text(json_text(document, ["a head with ${x}"], remarks))
    assert what(dict(wanted.resources)) == what(PRESENT)
    assert json_text(document) == json_text(document, (), {})


def test_a_file_that_several_include_is_read_once(tmp_path: Path) -> None:
    wanted = load_files(
        tmp_path, main="include: [a.yaml, b.yaml]", a="include: c.yaml", b="include: c.yaml", c="topics: {t: {partitions: 1}}"
    )  # fmt: skip
    assert [key.name for key in wanted.resources] == ["t"]


def test_rules_are_multiplied_out(tmp_path: Path) -> None:
    wanted = load_files(
        tmp_path,
        main="""
acls:
  - principals: [User:a, User:b]
    topic: [x, y]
    operations: [read, describe]
  - {principals: User:a, topic: x, operations: read}
  - {principals: User:a, cluster: true, operations: create, hosts: 10.0.0.1, permission: deny}
""",
    )
    names = [key.name for key in wanted.resources]
    assert len(names) == 9  # the second entry is one of the first
    assert "deny User:a create on cluster from 10.0.0.1" in names


def wanted_of(text: str) -> Wanted:
    return _load_text(text)


PRESENT = by_key(
    [
        Resource(
            kind="topic", name="orders", fields={"partitions": 3, "replication_factor": 1, "a": "1", "b": "2"}
        ),
        Resource(kind="topic", name="old", fields={"partitions": 1, "replication_factor": 1}),
        Resource(kind="broker", name=DEFAULT, fields={"x": "1"}),
    ]
)


def actions(text: str) -> list[tuple[str, str | None, object, object, str]]:
    return [
        (row.name, row.field, row.present, row.desired, row.action)
        for changed in differences(wanted_of(text), PRESENT)
        for row in changed.drifts
    ]


def test_what_is_not_in_the_file_stays() -> None:
    assert actions("topics: {orders: {partitions: 3, configs: {a: 1}}}") == [("orders", "b", "2", None, NONE)]


def test_what_is_managed_goes() -> None:
    text = "manage: {topics: 'o*'}\ntopics: {orders: {partitions: 6, configs: {a: 1}}}"
    assert actions(text) == [
        ("old", None, "present", None, DELETE),
        ("orders", "partitions", 3, 6, CHANGE),
        ("orders", "b", "2", None, DELETE),
    ]
    changed = list(differences(wanted_of(text), PRESENT))
    assert [each.action for each in changed] == [DELETE, CHANGE] and deletions(changed) == 2
    page = cast(Page, SimpleNamespace(style=lambda text, _: text))
    told = [
        line.split("   /")[0]
        for line in drift_text([DRIFT.of(row) for each in changed for row in each.drifts], page)
    ]
    assert told == [
        "- topic old",
        "~ topic orders",
        "    partitions  3 -> 6",
        "    b           2, not in the files: it goes",
    ]


def test_null_unsets_and_creates_nothing() -> None:
    text = "topics: {orders: {configs: {a: null, c: null}}}\nbrokers: {'2': {x: null}}"
    assert actions(text) == [("orders", "a", "1", None, CHANGE), ("orders", "b", "2", None, NONE)]


def test_what_was_not_read_is_neither_created_nor_changed() -> None:
    text = "topics: {orders: {partitions: 6, configs: {a: 1}}, new: {partitions: 1}}\nquotas: [{user: u, request_percentage: null}]"
    changed = list(differences(wanted_of(text), PRESENT, lambda resource: f"{resource.kind} not seen"))
    assert [each.action for each in changed] == [None, None, None]
    assert [(row.name, row.field, row.present, row.action, row.why) for each in changed for row in each.drifts] == [
        ("new", None, None, None, "topic not seen"),
        ("orders", "partitions", 3, CHANGE, None),
        ("orders", "a", None, None, "topic not seen"),
        ("orders", "b", "2", NONE, None),
        ("user=u", None, None, None, "quota not seen"),
    ]  # fmt: skip
    page = cast(Page, SimpleNamespace(style=lambda text, _: text))
    (heading, *lines) = drift_text([DRIFT.of(row) for row in changed[1].drifts], page)
    assert (
        heading.startswith("? topic orders")
        and "    a           not known (topic not seen) -> 1   " in lines[1]
    )


def test_why_a_resource_was_not_read() -> None:
    denied = MissingRight(Right("Describe", "Topic", "seen-not"), "User:me", "topic seen-not")
    problems = [
        unread("topic seen-not", denied),
        *(
            Problem(place, "denied")
            for place in ("configurations of users", "configurations of groups", RULES)
        ),
        Problem("configuration of broker 1", "denied"),
    ]
    state = ClusterState(
        cluster_id=None, kafka_version=KafkaVersion(4, 0), brokers={2: Broker(2, None, 1)}, controller=None, backend="admin",
        problems=tuple(problems[:3] + problems[4:]),
    )  # fmt: skip
    present = Present(state, [], problems, [], {"ips": "too old"})
    text = """
topics: {seen-not: {partitions: 1}, absent: {partitions: 1}}
brokers: {'1': {x: 1}, '2': {x: 1}}
groups: {g: {x: 1}}
users: {u: {mechanisms: SCRAM-SHA-256}}
quotas: [{user: u, request_percentage: 1}, {ip: 10.0.0.1, connection_creation_rate: 1}]
acls: [{principals: User:a, topic: x, operations: read}]
"""
    resources = wanted_of(text).resources.values()
    whys = {resource.name: present.why_unread(resource) for resource in resources}
    assert whys == {
        "seen-not": "Describe on Topic seen-not is missing for User:me",
        "absent": None, "1": "denied", "2": None, "g": "denied", "u": None,
        "user=u": "denied", "ip=10.0.0.1": "too old",
        "allow User:a read on topic x": "denied",
    }  # fmt: skip
    hidden = present._replace(state=replace(state, hidden="topics may be hidden"))
    (absent,) = (resource for resource in resources if resource.name == "absent")
    assert hidden.why_unread(absent) == "topics may be hidden"
    in_zookeeper = replace(
        state, backend="zookeeper", hidden="/brokers/topics/x is hidden", topic_names=("x",)
    )
    assert present._replace(state=in_zookeeper).why_unread(absent) is None
    in_zookeeper = replace(in_zookeeper, topic_names=("absent", "x"))
    assert present._replace(state=in_zookeeper).why_unread(absent) == "/brokers/topics/x is hidden"


def test_two_that_read_alike_have_an_order() -> None:
    alike = [
        quota_resource("a, client-id=b", None, None, {"producer_byte_rate": "1"}),
        quota_resource("a", "b", None, {"producer_byte_rate": "2"}),
    ]
    assert alike[0].name == alike[1].name and alike[0].key != alike[1].key
    assert document_of(alike) == document_of(alike[::-1])


def test_a_new_topic_has_a_row_for_each_field() -> None:
    text = "topics: {new: {partitions: 1, replication_factor: 2, configs: {z: 1, a: 2}}}"
    rows = [row for row in actions(text) if row[0] == "new"]
    assert [(row[1], row[3]) for row in rows] == [
        (None, "present"), ("partitions", 1), ("replication_factor", 2), ("a", "2"), ("z", "1"),
    ]  # fmt: skip
    assert {row[4] for row in rows} == {CREATE}


def test_a_folder_of_files(tmp_path: Path) -> None:
    document = document_of(PRESENT.values())
    names = write_document(Target(tmp_path / "cluster", False), document)
    assert sorted(path.name for path in names) == ["brokers.yaml", "topics.yaml"]
    assert what(dict(load([tmp_path / "cluster"], {}, {}).resources)) == what(PRESENT)
    (one,) = write_document(Target(tmp_path / "cluster.json", True), document)
    assert json.loads(one.read_text())["topics"]["old"] == {"partitions": 1, "replication_factor": 1}
    assert what(dict(load([one], {}, {}).resources)) == what(PRESENT)


@pytest.mark.parametrize("text", ["", "---\n", "# nothing\n"])
def test_a_file_with_nothing_in_it_is_an_error(text: str) -> None:
    with pytest.raises(BadValue, match="the file is empty"):
        wanted_of(text)


@pytest.mark.parametrize("text", ["topics:\n", "kctl: 1\n"])
def test_an_empty_file_asks_for_nothing(text: str) -> None:
    assert wanted_of(text).resources == {}


def test_a_kind_is_in_every_table_of_kinds() -> None:
    """One that the planner does not know would be shown by `diff`, and never changed by `apply`."""
    kinds = set(SECTIONS.values())
    assert set(REFUSALS) == {kind for named in KINDS.values() for kind in named} == kinds
    assert {*WITH_CONFIG, "user", "acl"} == kinds
    assert {*READERS, "topics"} == set(SECTIONS)
    assert set(SECTIONS) <= cast(dict[str, object], file_schema()["properties"]).keys()
    assert set(DRIFT.fields["kind_of_resource"].choices) == kinds
