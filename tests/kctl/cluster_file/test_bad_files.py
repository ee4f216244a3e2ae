"""Files that cannot be what was meant: each is one error with its file, its line and what to write."""

import re
from pathlib import Path

import pytest

from kctl.cluster_file import document
from kctl.cluster_file.acceptable import refuse_unacceptable
from kctl.cluster_file.difference import differences
from kctl.cluster_file.loading import load
from kctl.errors import KctlError

TOPIC = "topics:\n  orders:\n    partitions: 3\n    replication_factor: 1\n"
# The file, the line of its error, words of the error, words of what to write.
BAD: dict[str, tuple[str, int, str, str]] = {
    "a text": ("orders\n", 1, "the file is not a mapping", "write `topics:"),
    "a list": ("- orders\n", 1, "the file is not a mapping", "write `topics:"),
    "unknown section": ("topic:\n  orders: {}\n", 1, "'topic' is not a key of a file", "did you mean topics?"),
    "other format": ("kctl: 2\n", 1, "the format is of another kctl", "write `kctl: 1`"),
    "format is a list": ("kctl: [1]\n", 1, "kctl is not a text", "write `kctl: 1`"),
    "topics are a list": ("topics:\n  - orders\n", 2, "topics is not a mapping", "write `topics: {orders:"),
    "topics are a text": ("topics: orders\n", 1, "topics is not a mapping", "write `topics: {orders:"),
    "a topic is a number": ("topics:\n  orders: 3\n", 2, "topic orders is not a mapping", "write `orders: {partitions"),
    "misspelt key": (
        "topics:\n  orders:\n    partition: 3\n", 3, "'partition' is not a key of a topic", "did you mean partitions",
    ),
    "config beside configs": (
        "topics:\n  orders:\n    retention.ms: 3\n", 3, "'retention.ms' is not a key of a topic", "did you mean partitions",
    ),
    "topic twice": (TOPIC + "  orders: {}\n", 5, "orders stands twice here, first in line 2", "leave one of the two"),
    "key twice": (TOPIC + "    partitions: 4\n", 5, "partitions stands twice here, first in line 3", "leave one"),
    "section twice": (TOPIC + "topics: {}\n", 5, "topics stands twice here, first in line 1", "leave one"),
    "no partitions": ("topics: {orders: {partitions: 0}}\n", 1, "partitions is '0'", "a whole number from 1 to"),
    "negative": ("topics: {orders: {partitions: -3}}\n", 1, "partitions is '-3'", "a whole number from 1"),
    "a fraction": ("topics: {orders: {partitions: 1.5}}\n", 1, "partitions is '1.5'", "a whole number from 1"),
    "underscores": ("topics: {orders: {partitions: 1_000}}\n", 1, "partitions is '1_000'", "a whole number"),
    "hexadecimal": ("topics: {orders: {partitions: 0x10}}\n", 1, "partitions is '0x10'", "a whole number"),
    "a huge number": (
        f"topics: {{orders: {{partitions: {'9' * 5000}}}}}\n", 1, "partitions is '999", "a whole number from 1",
    ),
    "null partitions": ("topics:\n  orders:\n    partitions:\n", 3, "partitions is empty", "write `partitions: 3`"),
    "a list of partitions": (
        "topics:\n  orders:\n    partitions: [1]\n", 3, "partitions is not a text", "write `partitions: 3`",
    ),
    "illegal name": ("topics:\n  or ders: {}\n", 2, "'or ders' is not a topic name", "letters, digits"),
    "empty name": ("topics:\n  '': {}\n", 2, "a topic's name cannot be empty", "letters"),
    "long name": (f"topics:\n  {'a' * 300}: {{}}\n", 2, "topic name of 300 characters", "a shorter one"),
    "internal topic": ("topics:\n  __consumer_offsets: {}\n", 2, "is Kafka's own topic", "leave it out"),
    "configs are a list": (
        "topics:\n  orders:\n    configs: [a]\n", 3, "the configuration of topic orders is not a mapping", "write `configs:",
    ),
    "a value is a mapping": (
        "topics:\n  orders:\n    configs:\n      a: {b: c}\n", 4, "the value of a is a mapping", "write `a: VALUE`",
    ),
    "a list in a list": (
        "topics:\n  orders:\n    configs:\n      a: [[b]]\n", 4, "a is not a text", "write `a: VALUE`",
    ),
    "replicas and partitions": (
        "topics:\n  orders:\n    replicas: '1:2'\n    partitions: 1\n", 4, "stand beside each other", "leave one",
    ),
    "replicas are no numbers": ("topics: {a: {replicas: '1:x'}}\n", 1, "'1:x' is not replicas", "write a list a partition"),
    "placement": ("topics: {a: {placement: here}}\n", 1, "placement is 'here'", "write racks, untouched"),
    "placement without brokers": ("topics: {a: {placement: brokers}}\n", 1, "placement is 'brokers'", "write racks"),
    "a broker's name": ("brokers:\n  one: {a: b}\n", 2, "'one' is not a broker id", "write its number"),
    "a secret": (
        "brokers:\n  <default>:\n    ssl.keystore.password: x\n", 3, "ssl.keystore.password is a secret", "kafka-configs",
    ),
    "a user without mechanisms": ("users:\n  app: {}\n", 2, "user app has no mechanisms", "write `mechanisms:"),
    "a mechanism": ("users: {app: {mechanisms: MD5}}\n", 1, "'MD5' is not a mechanism", "it is one of SCRAM"),
    "few iterations": (
        "users: {app: {mechanisms: {SCRAM-SHA-256: 1}}}\n", 1, "SCRAM-SHA-256 with 1 iterations", "from 4,096 to 16,384",
    ),
    "a password for iterations": (
        "users:\n  app:\n    mechanisms:\n      SCRAM-SHA-256: hunter2\n", 4, "the iterations of SCRAM-SHA-256 are no whole number",
        "write `SCRAM-SHA-256: 4096`",
    ),
    "a group without a name": ("groups:\n  '': {a: b}\n", 2, "the name of a group is empty", "write the name"),
    "partitions among configs": (
        "topics:\n  orders:\n    configs:\n      partitions: 3\n", 4, "partitions is no configuration", "beside `configs`",
    ),
    "a password": ("users:\n  app:\n    password: x\n", 3, "'password' is not a key of a user", "there are mechanisms"),
    "a user's name": ("users:\n  'é': {mechanisms: SCRAM-SHA-256}\n", 2, "nobody can log in", "ASCII"),
    "quotas are a mapping": ("quotas:\n  app: {}\n", 2, "quotas is not a list", "write `quotas: ["),
    "a quota for nobody": ("quotas:\n  - producer_byte_rate: 1\n", 2, "for nobody", "write user, client_id"),
    "a quota of all": (
        "quotas:\n  - {user: a, ip: 10.0.0.1, producer_byte_rate: 1}\n", 2, "an address has quotas of its own", "leave user",
    ),
    "a quota without value": ("quotas:\n  - user: a\n", 2, "the quota has no value", "write one of producer_byte_rate"),
    "a quota's value": (
        "quotas:\n  - user: a\n    producer_byte_rate: fast\n", 3, "producer_byte_rate is 'fast'", "write a number",
    ),
    "an infinite quota": ("quotas: [{user: a, producer_byte_rate: inf}]\n", 1, "is 'inf'", "write a number"),
    "a quota twice": (
        "quotas:\n  - {user: a, producer_byte_rate: 1}\n  - {user: a, consumer_byte_rate: 1}\n",
        3, "quota user=a stands twice, first at ", "leave one of the two",
    ),
    "a rule for nobody": ("acls:\n  - {topic: a, operations: read}\n", 2, "the rule has no principals", "User:app"),
    "a principal": (
        "acls:\n  - {principals: app, topic: a, operations: read}\n", 2, "'app' is not a principal", "write TYPE:NAME",
    ),
    "a rule about nothing": ("acls:\n  - {principals: User:a, operations: read}\n", 2, "about nothing", "write one of"),
    "no operation": ("acls:\n  - {principals: User:a, topic: a}\n", 2, "the rule has no operations", "operations: read"),
    "an operation": (
        "acls:\n  - {principals: User:a, topic: a, operations: reed}\n", 2, "brokers check no 'reed' on a topic", "did you mean read",
    ),
    "an operation of others": (
        "acls:\n  - {principals: User:a, group: a, operations: write}\n", 2, "brokers check no 'write' on a group", "read",
    ),
    "a permission": (
        "acls:\n  - principals: User:a\n    topic: a\n    operations: read\n    permission: maybe\n",
        5, "permission is 'maybe'", "write allow or deny",
    ),
    "a cluster": (
        "acls: [{principals: User:a, cluster: main, operations: create}]\n", 1, "cluster is not true", "write `cluster: true`",
    ),
    "defaults of others": ("defaults:\n  users: {}\n", 2, "'users' is not a key of defaults", "topics"),
    "manage": ("manage:\n  topic: all\n", 2, "'topic' is not a key of manage", "did you mean topics"),
    "a tab": ("topics:\n\torders: {}\n", 2, "a tab where spaces are expected", "indent with spaces"),
    "not closed": ("topics: {orders: {partitions: 3}\n", 2, "this is not YAML", "write `key: value`"),
    "a colon": ("topics:\n  orders: a: b\n", 2, "this is not YAML", "in quotes"),
    "bad indentation": ("topics:\n  orders: {}\n other: {}\n", 3, "this is not YAML", "two spaces deeper"),
    "a tag": ("topics: !!python/object/apply:os.system [id]\n", 1, "the tag tag:yaml.org,2002:python/", "leave the tag out"),
    "a merge key": ("topics:\n  a: &x {}\n  b:\n    <<: *x\n", 4, "`<<` is not read", "use `defaults`"),
    "an alias of nothing": ("topics: *x\n", 1, "*x stands for nothing", "write `&name`"),
    "an alias of itself": ("topics: &x\n  a: *x\n", 2, "*x repeats itself", "write `&name`"),
    "a list as a key": ("topics:\n  ? [a]\n  : {}\n", 2, "a key is a list or a mapping", "write a name"),
    "a second document": ("topics: {}\n---\ntopics: {}\n", 3, "a second document begins", "one a file"),
    "a control character": ("topics:\n  a\x01: {}\n", 2, "a character that no YAML file may hold", "take it out"),
    "no such variable": ("topics:\n  ${team}-a: {}\n", 2, "${team} has no value", "--set team=VALUE"),
    "no such environment": ("topics:\n  a: {partitions: '${env:NO_SUCH}'}\n", 2, "NO_SUCH is not in the environment", "export"),
    "two names by variables": (
        "variables: {a: x, b: x}\ntopics:\n  ${a}: {}\n  ${b}: {}\n", 4, "x stands twice here, first in line 3", "leave one",
    ),
    "an include of nothing": ("\ninclude: no-such.yaml\n", 2, "no-such.yaml is not there", "write its path"),
    "an include of itself": ("\ninclude: bad.yaml\n", 2, "includes itself", "take one of the includes out"),
    "an include that is a mapping": ("include: {a: b}\n", 1, "include is not a text", "write `include: ["),
}  # fmt: skip


def error_of(path: Path) -> KctlError:
    with pytest.raises(KctlError) as raised:
        refuse_unacceptable(differences(load([path], {}, {}), {}))
    return raised.value


@pytest.mark.parametrize("name", BAD)
def test_one_error_with_file_line_and_what_to_write(name: str, tmp_path: Path) -> None:
    text, line, what, hint = BAD[name]
    path = tmp_path / "bad.yaml"
    path.write_text(text, encoding="utf-8")
    error = error_of(path)
    assert error.exit_code == 2
    assert error.message.startswith(f"{path}:{line}: ") or f"/bad.yaml:{line}: " in error.message, (
        error.message
    )
    assert what in error.message
    assert hint in error.hint
    assert "\n" not in str(error)


@pytest.mark.parametrize(
    "text",
    [
        "users:\n  app:\n    password: {}\n",
        "users:\n  app:\n    mechanisms:\n      SCRAM-SHA-512: {}\n",
        "users:\n  app: {}\n",
        "brokers:\n  <default>:\n    ssl.key.password: {}\n",
        "topics:\n  a:\n    configs:\n      sasl.jaas.config: [{}]\n",
        "users:\n  app:\n    password: *{}\n",
        "users:\n  app:\n    password: !{}\n",
        "users:\n  app:\n    password: '{}\n",
    ],
)
def test_an_error_shows_file_and_line_and_no_secret(text: str, tmp_path: Path) -> None:
    path = tmp_path / "passwords.yaml"
    path.write_text(text.format("hunter2"))
    error = error_of(path)
    assert "hunter2" not in str(error)
    assert re.match(rf"{path}:[1-9]: ", error.message), error.message


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("topics: {a: {partitions: '${env:DB_SECRET}'}}", "run `export DB_SECRET=VALUE` before kctl"),
        ("topics: {a: {partitions: '${db_secret}'}}", "give `--set db_secret=VALUE`, or write `variables: {db_secret: VALUE}`"),
        ("topics: {a: {partitions: '${env:}'}}", "write `${env:NAME}`"),
        ("include: '${secret}.yaml'", "write `include: [topics.yaml]`; what differs between clusters"),
    ],
)  # fmt: skip
def test_what_to_write_is_a_whole_line(text: str, hint: str, tmp_path: Path) -> None:
    path = tmp_path / "secrets.yml"
    path.write_text(text)
    assert hint in error_of(path).hint
    assert f"{path}:1: " in error_of(path).message


def test_there_are_many() -> None:
    assert len(BAD) > 60


def test_text_that_is_not_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_bytes(b"topics:\n  a\xff: {}\n")
    assert f"{path}:2: byte 0xff is not UTF-8" in error_of(path).message


def test_a_file_that_is_too_large(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    with path.open("wb") as file:
        file.truncate(100 << 20)
    assert f"{path}:1: the file is larger than 16 MiB" in error_of(path).message


def test_aliases_that_explode(tmp_path: Path) -> None:
    """Ten levels of ten aliases each are ten thousand million values."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    path = tmp_path / "bad.yaml"
    path.write_text("\n".join(lines))
    error = error_of(path)
    assert f"{path}:7: more than 2,000,000 values" in error.message


@pytest.mark.parametrize("opening", ["[", "{b: ", "- "])
def test_what_is_nested_without_an_end(opening: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(opening * 100_000)
    assert f"{path}:1: nested more than {document.DEEPEST} levels deep" in error_of(path).message


def test_includes_in_a_circle_name_the_line(tmp_path: Path) -> None:
    for name, other in (("a", "b"), ("b", "c"), ("c", "a")):
        (tmp_path / f"{name}.yaml").write_text(f"kctl: 1\ninclude: {other}.yaml\n")
    assert f"{tmp_path}/a.yaml:2: {tmp_path}/a.yaml includes itself" in error_of(tmp_path / "a.yaml").message


def test_a_topic_in_two_files_names_both(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(TOPIC)
    (tmp_path / "b.yaml").write_text("\n\n" + TOPIC)
    message = error_of(tmp_path).message
    assert f"{tmp_path}/b.yaml:4: topic orders stands twice, first at {tmp_path}/a.yaml:2" in message


def test_a_folder_without_files(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    assert "no file of YAML or JSON here" in error_of(tmp_path).message
