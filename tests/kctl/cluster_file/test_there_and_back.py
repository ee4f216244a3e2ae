"""Whatever a cluster has, what `kctl export` writes of it is read back, and nothing differs then."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kctl.access.acl import OPERATIONS
from kctl.access.quotas import QUOTA_NAMES
from kctl.cluster.names import sanitized
from kctl.cluster_file.acceptable import refuse_unacceptable
from kctl.cluster_file.difference import differences
from kctl.cluster_file.document import Place
from kctl.cluster_file.holdable import to_hold
from kctl.cluster_file.loading import load
from kctl.cluster_file.present import present_in
from kctl.cluster_file.recorded import EVERY_KIND, image_resources
from kctl.cluster_file.resources import SECTIONS, Managed, Resource, Resources, Wanted, by_key
from kctl.cluster_file.writing import LONGEST_KEY, document_of, json_text, yaml_lines
from kctl.errors import BadValue
from kctl.internal_topics.cluster_image import ClusterImage, PartitionImage
from kctl.model import Json
from kctl.zookeeper.cluster import ZookeeperCluster
from tests.conftest import examples
from tests.fakes import fake_cluster

ODD = (
    "", " ", "~", "null", "yes", "No", "on", "true", "False", "0", "-0", "012", "1_000", "1e3", ".5", "-1.50", "0x1f", "0o7",
    "2024-01-02", "2024-01-02T03:04:05Z", "12:30:45", "<<", "=", "<default>", "%3Cdefault%3E", "${x}", "$${x}", "$$${env:Y}",
    "${a${b}}", "${", "- a", "a: b", "a #b", "#", "&a", "*a", "!a", "|", ">", "%YAML", "@a", "`a`", "'", '"', "\\", "? a", "{}",
    "[a", "a,b=c", "CN=a b, O=c@d", "a\nb", "\n", "\t", "a\tb", " a ", "\r\n", "\x00", "\x7f", "\x85", "\u2028", "\ufeff", "é",
    "\U0001f600", "\U0010ffff", "\ud800", "---", "...", "labels", "partitions", "replicas", "x" * 1100, "é" * 400,
    "allow User:a read on topic x from 1", "a, client-id=b", "/clients/", "a/clients/b", "nan", "-inf", "9" * 30,
)  # fmt: skip
TEXTS = st.sampled_from(ODD) | st.text(max_size=12)
NAMES = TEXTS.filter(bool)
TOPICS = st.sampled_from(
    ["a.b", "a_b", "-", "_", "...", "9", "on", "labels", "a" * 249, "b" * 255, "null"]
) | st.text("ab.-_1", min_size=1, max_size=9)
CONFIG_KEYS = st.sampled_from(["retention.ms", "cleanup.policy", "segment.bytes", "ssl.key.password"]) | NAMES
CONFIGS = st.dictionaries(CONFIG_KEYS, TEXTS, max_size=4)
QUOTAS = st.dictionaries(
    st.sampled_from(QUOTA_NAMES) | NAMES,
    st.sampled_from(["1", "0.5", "1E7", "9223372036854775807", "-1", "1e300", "x", "NaN"]) | TEXTS,
    max_size=4,
)
BROKER_IDS = st.integers(0, 3)
REPLICAS = st.dictionaries(st.integers(0, 4), st.lists(BROKER_IDS, max_size=3), max_size=4)
CREDENTIALS = st.dictionaries(
    st.sampled_from(["SCRAM-SHA-256", "SCRAM-SHA-512"]),
    st.sampled_from([1, 4096, 16384, 20000, 0]),
    min_size=1,
)
RULES = st.fixed_dictionaries(
    {
        "principal": st.sampled_from(["User:*", "app", "User:", ":", "User:CN=a, O=b", "Role:x"]) | NAMES,
        "permissionType": st.sampled_from(["Allow", "Deny"]),
        "operation": st.sampled_from(["Read", "All", "Create", "DescribeConfigs", "TwoPhaseCommit"]),
        "host": st.sampled_from(["*", "10.0.0.1", "::1"]) | NAMES,
    }
)
MANAGED = tuple(Managed(kind, "*", Place("all", 1)) for kind in SECTIONS.values())
Read = Callable[[Resources], list[Resource]]


def check(present: list[Resource], again: Read) -> None:
    """Written in each form, read back, all of it managed: nothing differs, and brokers are not asked what they take."""
    document = document_of(present)
    texts = {"cluster.yaml": "\n".join([*yaml_lines(document, ["a head"]), ""])}
    try:
        texts["cluster.json"] = json_text(document, ["a head"])
    except BadValue as error:
        assert "too long for JSON" in error.message
        assert max(map(len, texts["cluster.yaml"].splitlines())) > LONGEST_KEY
    else:
        assert json.loads(texts["cluster.json"])["kctl"] == 1
    yaml.safe_load(texts["cluster.yaml"])
    for name, text in texts.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.write_text(text, encoding="utf-8")
            wanted = load([path], {}, {})
        everything = Wanted(resources=wanted.resources, managed=MANAGED)
        now = again(wanted.resources)
        changed = list(differences(everything, by_key(now)))
        assert [row for each in changed for row in each.drifts] == []
        different = {(each.kind, each.name, each.acl, each.entity) for each in present}
        assert len(wanted.resources) == len(different), "no two are taken for one"
        refuse_unacceptable(changed)


def in_znodes(name: str) -> bool:
    """Whether a znode can be called so."""
    return name not in (".", "..") and "/" not in name and "\x00" not in name and name.isprintable()


ENTITIES = NAMES.map(lambda name: sanitized(name.encode("utf-8", "replace").decode())) | st.just("<default>")


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(
    topics=st.dictionaries(TOPICS.filter(in_znodes), st.tuples(REPLICAS, CONFIGS), max_size=3),
    brokers=st.dictionaries(st.sampled_from(["1", "<default>", "abc"]), CONFIGS, max_size=2),
    users=st.dictionaries(ENTITIES, st.tuples(QUOTAS, CREDENTIALS | st.just({})), max_size=3),
    clients=st.dictionaries(ENTITIES, QUOTAS, max_size=2),
    both=st.dictionaries(st.tuples(ENTITIES, ENTITIES), QUOTAS, max_size=2),
    ips=st.dictionaries(st.sampled_from(["10.0.0.1", "<default>", "::1"]), QUOTAS, max_size=2),
    rules=st.dictionaries(
        st.tuples(st.sampled_from(["Topic", "Group", "Cluster", "TransactionalId", "Later"]), NAMES.filter(in_znodes)),
        st.lists(RULES, max_size=3), max_size=3,
    ),
    prefixed=st.lists(RULES, max_size=2),
)  # fmt: skip
def test_any_zookeeper(
    topics: dict[str, tuple[dict[int, list[int]], dict[str, str]]],
    brokers: dict[str, dict[str, str]],
    users: dict[str, tuple[dict[str, str], dict[str, int]]],
    clients: dict[str, dict[str, str]],
    both: dict[tuple[str, str], dict[str, str]],
    ips: dict[str, dict[str, str]],
    rules: dict[tuple[str, str], list[Json]],
    prefixed: list[Json],
) -> None:
    store = fake_cluster()

    def put(path: str, config: dict[str, str]) -> None:
        store.put(path, {"version": 1, "config": dict[str, Json](config)})

    for name, (replicas, config) in topics.items():
        partitions: dict[str, Json] = {str(p): list[Json](ids) for p, ids in replicas.items()}
        store.put(f"/brokers/topics/{name}", {"version": 1, "partitions": partitions})
        put(f"/config/topics/{name}", config)
    for name, config in brokers.items():
        put(f"/config/brokers/{name}", config)
    for name, (quotas, credentials) in users.items():
        stored = {
            key: f"salt=YQ==,stored_key=YQ==,server_key=YQ==,iterations={n}" for key, n in credentials.items()
        }
        put(f"/config/users/{name}", {**quotas, **stored})
    for name, config in clients.items():
        put(f"/config/clients/{name}", config)
    for (user, client), config in both.items():
        put(f"/config/users/{user}/clients/{client}", config)
    for name, config in ips.items():
        put(f"/config/ips/{name}", config)
    for (kind, name), listed in rules.items():
        store.put(f"/kafka-acl/{kind}/{name}", {"version": 1, "acls": listed})
    store.put("/kafka-acl-extended/prefixed/Topic/a", {"version": 1, "acls": list[Json](prefixed)})

    def read(wanted: Resources) -> list[Resource]:
        return present_in(ZookeeperCluster(store), None, tuple(SECTIONS.values()), None, wanted).resources

    check(read({}), read)


ANY_NAMES = st.none() | NAMES
NUMBERED_RULES = st.fixed_dictionaries(
    {
        "resource_type": st.integers(2, 9), "resource_name": NAMES, "pattern_type": st.integers(3, 5), "principal": NAMES,
        "host": NAMES, "operation": st.sampled_from([*OPERATIONS, 16, 99]), "permission_type": st.integers(2, 4),
    }
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(
    topics=st.dictionaries(TEXTS, REPLICAS, max_size=3),
    configs=st.dictionaries(
        st.tuples(st.sampled_from(["topic", "broker", "group", "client-metrics", "later"]), TOPICS | TEXTS), CONFIGS, max_size=4
    ),
    quotas=st.dictionaries(
        st.dictionaries(st.sampled_from(["user", "client-id", "ip", "later"]), ANY_NAMES, min_size=1, max_size=2).map(
            lambda entity: tuple(sorted(entity.items()))
        ),
        st.dictionaries(st.sampled_from(QUOTA_NAMES) | NAMES, st.floats(), max_size=3), max_size=3,
    ),
    rules=st.lists(NUMBERED_RULES, max_size=5),
    users=st.dictionaries(st.tuples(TEXTS, st.integers(0, 3)), st.integers(-1, 99999), max_size=4),
)  # fmt: skip
@example(
    topics={}, configs={}, rules=[], users={},
    quotas={(("user", "a, client-id=b"),): {QUOTA_NAMES[0]: 1.0}, (("client-id", "b"), ("user", "a")): {QUOTA_NAMES[0]: 2.0}},
)  # fmt: skip
def test_any_metadata_log(
    topics: dict[str, dict[int, list[int]]],
    configs: dict[tuple[str, str], dict[str, str]],
    quotas: dict[tuple[tuple[str, str | None], ...], dict[str, float]],
    rules: list[dict[str, object]],
    users: dict[tuple[str, int], int],
) -> None:
    image = ClusterImage(
        names={f"id{n}": name for n, name in enumerate(topics)},
        partitions={
            f"id{n}": {p: partition(ids) for p, ids in replicas.items()}
            for n, replicas in enumerate(topics.values())
        },
        configs=configs,
        quotas=quotas,
        acls={str(n): rule for n, rule in enumerate({tuple(rule.items()): rule for rule in rules}.values())},
        scram_users=dict.fromkeys(users, "digest"),
        scram_iterations=users,
    )

    def read(wanted: Resources) -> list[Resource]:
        return list(to_hold(image_resources(image, EVERY_KIND, wanted, []), []))

    check(read({}), read)


def partition(replicas: list[int]) -> PartitionImage:
    """A partition with these replicas."""
    return PartitionImage(replicas=replicas, isr=[], leader=-1, leader_epoch=0, partition_epoch=0)
