"""Whatever lies in the evidence, a command ends with an answer or a sentence: never as a bug, never with a traceback."""

import gzip
import json
import os
import shutil
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from formats.log.message_set import write_message, write_wrapper
from formats.log.record_batch import HEADER_SIZE, Record, read_header, seal, write_batch
from kctl.errors import SMALLER
from tests.commands.test_leaving import COMMANDS_A_TERMINAL
from tests.conftest import Ran, errors_in, kctl, recording, rows
from tests.log_examples import LOG

SEGMENT = "00000000000000000000"
DEEP = b"[" * 100_000
UGLY = "\udcff\x1b]0;x\x07\u202e"  # a byte that is no UTF-8, a title of a terminal, an override of direction
SURROGATE = '{"a":"\\ud800"}'
UNTIMED = b"TRACE [Controller id=3 epoch=1] Changed partition orders-0 state from NewPartition to OnlinePartition with state LeaderAndIsr(leader=1, leaderEpoch=0, isr=List(1), zkVersion=0) (state.change.logger)\n"
TORN = (
    b"",
    b"\x00" * 100,
    b"\xff\xfe" + "0\n1\n".encode("utf-16-le"),
    b"\xff" * 64,
    DEEP,
    SURROGATE.encode(),
)


def znode(path: str, data: bytes, **stat: object) -> bytes:
    row = {"path": path, "data": b64encode(data).decode(), "version": 0, "czxid": 1, "mzxid": 1, **stat}
    return json.dumps(row).encode() + b"\n"


def cluster_znodes(topic: str, odd: bytes) -> bytes:
    """Znodes of a cluster with one topic, and `odd` as the content of many."""
    state = b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1]}'
    nodes = [
        ("/", b""), ("/brokers", b""), ("/brokers/ids", b""), ("/brokers/topics", b""), ("/controller_epoch", b"1"),
        ("/controller", b'{"version":1,"brokerid":1,"timestamp":"0"}'), ("/cluster", b""), ("/cluster/id", b'{"version":"1","id":"\\ud800"}'),
        ("/brokers/ids/1", b'{"version":5,"host":"h\\ud800","port":9092,"endpoints":["PLAINTEXT://h\\ud800:9092"],"jmx_port":-1,"timestamp":"0","rack":"\\udcff"}'),
        ("/brokers/ids/2", odd), (f"/brokers/topics/{topic}", b'{"version":1,"partitions":{"0":[1]}}'),
        (f"/brokers/topics/{topic}/partitions", b""), (f"/brokers/topics/{topic}/partitions/0", b""),
        (f"/brokers/topics/{topic}/partitions/0/state", state), ("/brokers/topics/odd", odd), ("/brokers/topics/odd/partitions", b""),
        ("/brokers/topics/odd/partitions/0", b""), ("/brokers/topics/odd/partitions/0/state", odd), ("/config", b""), ("/config/topics", b""),
        (f"/config/topics/{topic}", b'{"version":1,"config":{"retention.ms\\ud800":"\\udcff"}}'), ("/config/topics/odd", odd), ("/config/changes", b""), ("/config/users", b""),
        ("/config/users/u", b'{"version":1,"config":{"SCRAM-SHA-256":"\\ud800"}}'), ("/config/clients", b""), ("/config/brokers", b""), ("/config/brokers/1", odd),
        ("/admin", b""), ("/admin/delete_topics", b""), ("/admin/reassign_partitions", odd), ("/admin/preferred_replica_election", odd), ("/isr_change_notification", b""),
        ("/consumers", b""), ("/consumers/g", b""), ("/consumers/g/offsets", b""), (f"/consumers/g/offsets/{topic}", b""), (f"/consumers/g/offsets/{topic}/0", odd),
        ("/consumers/g/ids", b""), ("/consumers/g/ids/c", odd), ("/consumers/g/owners", b""),
    ]  # fmt: skip
    return b"".join(znode(path, data) for path, data in nodes)


def names_that_are_no_text(root: Path) -> None:
    """Topics, folders and files whose names are no UTF-8 or command a terminal."""
    for broker in ("broker-1", f"broker-2{UGLY}"):
        for topic in ("orders-0", f"or{UGLY}ders-1", "\x01-2"):
            folder = root / broker / "logs" / topic
            folder.mkdir(parents=True)
            (folder / f"{SEGMENT}.log").write_bytes(LOG)
            (folder / f"{SEGMENT}.log{UGLY}").write_bytes(LOG)
            (folder / "leader-epoch-checkpoint").write_bytes(
                f"0\n1\n0 0{UGLY}\n".encode("utf-8", "surrogateescape")
            )
        (root / broker / f"server{UGLY}.log").write_bytes(
            b"[2026-11-21 13:00:00,000] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)\n"
        )
    for number, odd in enumerate(
        (*TORN, b"[]", b"{}", b"null", b'"x"', b"1e400", b'{"version":1,"config":[]}')
    ):
        (root / f"zno{UGLY}des-{number}.jsonl").write_bytes(cluster_znodes("orders", odd))
    for number, path in enumerate(("//", "/a//b", "/a/", "/x\ud800", "x", "", "/..", "/\x00", "/\x1b[2J")):
        (root / f"znodes-of-bad-path-{number}.jsonl").write_bytes(znode(path, b"{}"))


def files_of_zeros_and_worse(root: Path) -> None:
    """Every file that kctl knows, with content that is none."""
    for number, content in enumerate(TORN):
        broker = root / f"broker-{number}"
        folder = broker / "logs" / "orders-0"
        folder.mkdir(parents=True)
        for name in (
            f"{SEGMENT}.log", f"{SEGMENT}.index", f"{SEGMENT}.timeindex", f"{SEGMENT}.txnindex", f"{SEGMENT}.snapshot",
            "leader-epoch-checkpoint", "partition.metadata",
        ):  # fmt: skip
            (folder / name).write_bytes(content)
        for topic in (
            "__consumer_offsets-0",
            "__transaction_state-0",
            "__cluster_metadata-0",
            "__remote_log_metadata-0",
        ):
            (broker / "logs" / topic).mkdir()
            (broker / "logs" / topic / f"{SEGMENT}.log").write_bytes(content)
        for name in (
            "meta.properties", "recovery-point-offset-checkpoint", "replication-offset-checkpoint",
            "log-start-offset-checkpoint", "cleaner-offset-checkpoint", ".kafka_cleanshutdown", "bootstrap.checkpoint",
        ):  # fmt: skip
            (broker / "logs" / name).write_bytes(content)
        for name in ("server.log", "state-change.log", "controller.log"):
            (broker / name).write_bytes(content)
        (broker / "znodes.jsonl").write_bytes(content)
        (broker / "server.log.gz").write_bytes(gzip.compress(content)[:-3])
        (broker / "znodes.jsonl.gz").write_bytes(content)


def logs_of_no_time(root: Path) -> None:
    """Log lines without a time, with surrogates, NUL bytes, deep JSON and numbers beyond all bounds."""
    lines = (
        b"[9999-99-99 13:00:00,000] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)\n"
        b"INFO [KafkaServer id=1] started (kafka.server.KafkaServer)\n"
        b"[2026-11-21 13:00:00,000] TRACE [Controller id=3 epoch=1] Changed partition orders-0 state from NewPartition to OnlinePartition with state LeaderAndIsr(leader=99999999999999999999999, leaderEpoch=99999999999999999999, isr=List(1), zkVersion=0) (state.change.logger)\n"
        b"[0001-01-01 00:00:00,000] INFO \xed\xa0\x80 \x00 \xff [KafkaServer id=99999999999999999999999] started (kafka.server.KafkaServer)\n"
        + b'{"timestamp":"' + b"9" * 400 + b'","message":"\\ud800"}\n' + DEEP + b"\n"
        b'{"timestamp":1e400,"level":"INFO","logger":"x","message":"\\ud800"}\n'
    )  # fmt: skip
    for broker in ("broker-1", "broker-2"):
        (root / broker).mkdir(parents=True)
        (root / broker / "server.log").write_bytes(lines)
        (root / broker / "state-change.log").write_bytes(lines * 2)
        (root / broker / "controller.log").write_bytes(
            b"\xff\xfe" + lines.decode("latin-1").encode("utf-16-le")
        )


def tier_of_nothing(root: Path) -> None:
    """A tier whose objects are no objects, beside metadata that are no metadata."""
    for index, content in enumerate(TORN):
        folder = root / "tier" / f"orders-A{index}AAAAAAAAAAAAAAAAAAAAA" / "0"
        folder.mkdir(parents=True)
        stem = f"{SEGMENT}-B{index}AAAAAAAAAAAAAAAAAAAAA"
        for suffix in ("log", "indexes", "rsm-manifest"):
            (folder / f"{stem}.{suffix}").write_bytes(content)
    kafka = root / "broker-1" / "logs"
    (kafka / "orders-0").mkdir(parents=True)
    (kafka / "orders-0" / f"{SEGMENT}.log").write_bytes(LOG)
    (kafka / "__remote_log_metadata-0").mkdir()
    (kafka / "__remote_log_metadata-0" / f"{SEGMENT}.log").write_bytes(LOG)


def tier_without_epochs(root: Path) -> None:
    """A healthy tier whose brokers have no leader epochs."""
    shutil.copytree(recording("tier/h-custom-metadata"), root, dirs_exist_ok=True)
    for checkpoint in root.rglob("leader-epoch-checkpoint"):
        checkpoint.write_text("0\n0\n")


def folders_in_place_of_files(root: Path) -> None:
    """A folder wherever a file belongs, files wherever a folder does, and links that lead in circles."""
    logs = root / "broker-1" / "logs"
    for name in (f"{SEGMENT}.log", f"{SEGMENT}.index", "leader-epoch-checkpoint", "partition.metadata"):
        (logs / "orders-0" / name).mkdir(parents=True)
    for name in ("meta.properties", "recovery-point-offset-checkpoint"):
        (logs / name).mkdir()
    (logs / "orders-1").write_bytes(b"")
    (logs / "orders-2").symlink_to("orders-2")
    (logs / "orders-3").symlink_to(".")
    (root / "broker-1" / "server.log").mkdir()
    (root / "broker-1" / "znodes.jsonl").mkdir()


MAKERS: list[Callable[[Path], None]] = [
    names_that_are_no_text, files_of_zeros_and_worse, logs_of_no_time, tier_of_nothing, tier_without_epochs, folders_in_place_of_files,
]  # fmt: skip
"""Each fills a folder with evidence that is wrong in its own way."""

FOLDERS = [
    "segment verify", "segment verify --jobs 1 --level records", "segment rebuild --check", "checkpoint show", "epoch show", "epoch compare",
    "replica compare", "replica loss", "replica explain --topic orders --partition 0 --offset 0", "state-log merge", "state-log merge --format kafka", "state-log timeline", "state-log timeline --fix-skew",
    "remote format", "remote segments", "remote audit", "remote lookup --topic orders --partition 0 --offset 0", "remote plan", "remote follower --topic orders --partition 0 --broker 1", "offsets list", "offsets show g",
    "offsets history g", "offsets reset-file g", "transactions list", "transactions show t", "transactions hanging", "metadata show", "audit report",
]  # fmt: skip
FILES = [
    "segment dump", "segment dump --records", "segment dump --records --from-time 2020-01-01", "segment dump --records --key k --format kctl", "segment dump --format kafka --records",
    "segment dump --type index", "segment dump --type snapshot", "segment dump --type txnindex", "segment dump --type timeindex", "segment dump --type checkpoint", "segment dump --type epochs", "segment dump --type log",
    "checkpoint show", "replica simulate", "epoch show", "remote format", "state-log merge", "state-log timeline --fix-skew", "reassign verify --snapshot",
    "topic list --snapshot", "topic describe --snapshot", "topic config get orders --snapshot", "config get --entity-type topics --snapshot", "config get --entity-type users --snapshot",
    "cluster describe --snapshot", "cluster brokers --snapshot", "cluster controller --snapshot", "cluster health --snapshot", "cluster predict 1 --snapshot", "elect status --snapshot",
    "consumer list --snapshot", "consumer describe g --snapshot", "group list --snapshot", "znode tree --snapshot", "reassign status --snapshot", "reassign plan --topic orders --brokers 1 --snapshot",
    "group describe g --snapshot", "znode show / --snapshot", "znode show // --snapshot", "znode export - --snapshot",
]  # fmt: skip


def end_of(*words: object, **env: str) -> Ran:
    """A run that ends with an answer, or a sentence that names what was wrong."""
    ran = kctl(*words, env={"KCTL_DEBUG": "", "KCTL_JOURNAL": os.devnull + "/none", **env})
    said = ran.out.decode("utf-8", "replace") + ran.err
    assert ran.status in (0, 2, 3, 4, 5), (words, said[-2000:])
    assert "Traceback" not in said
    assert SMALLER not in said, words  # the last boundary knows no file
    if "kafka" not in words:  # the bytes of Kafka's own tools
        assert not COMMANDS_A_TERMINAL.search(said), words
    return ran


@pytest.fixture(scope="module", params=MAKERS, ids=lambda maker: maker.__name__)
def hostile(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    request.param(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("words", FOLDERS)
def test_folders(words: str, hostile: Path) -> None:
    assert end_of(*words.split(), hostile).status != 2


@pytest.mark.slow
def test_an_audit_of_it(hostile: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert end_of("audit", "run", hostile, "--out", out, "--jobs", "1").status in (0, 3, 5)
    if (out / "summary.json").exists():
        assert end_of("audit", "report", out).status == 0
        assert end_of("audit", "sql", out, "SELECT * FROM findings", "--output", "jsonl").status == 0


@pytest.mark.slow
@pytest.mark.parametrize("words", FILES)
def test_files(words: str, hostile: Path) -> None:
    distinct = {
        (path.name.partition(".")[2] or path.name, path.read_bytes()): path
        for path in sorted(hostile.rglob("*"))
        if path.is_file() and ("--snapshot" not in words or "zno" in path.name)
    }
    for path in distinct.values():
        end_of(*words.split(), path)


def test_arguments_that_are_no_text(tmp_path: Path) -> None:
    for words in (*FOLDERS, *FILES):
        end_of(*words.split(), f"{tmp_path}/no\udcff{UGLY}")
    for words in (
        ["topic", "describe", UGLY],
        ["group", "describe", UGLY],
        [UGLY],
        ["finding", UGLY],
        ["schema", UGLY],
    ):
        assert end_of(*words, "--snapshot", tmp_path / "none").status in (2, 3)
    assert end_of("state-log", "explain", UGLY).status == 5
    assert end_of("topic", "list", "--context", UGLY).status in (2, 3)


@pytest.mark.parametrize(
    "content",
    [
        *TORN,
        b"contexts = 3",
        b"[contexts]\nx=" + DEEP,
        b"a." * 5000 + b"b = 1",
        b"[contexts]\nx = " + b"9" * 5000,
    ],
)
def test_settings_and_scenarios(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(content)
    end_of("topic", "list", KCTL_CONFIG=str(file))
    end_of("topic", "list", "--context", "p", KCTL_CONFIG=str(file))
    end_of("replica", "simulate", file)
    end_of("topic", "list", KCTL_CONFIG=str(tmp_path))


@pytest.mark.parametrize(
    "content", [*TORN, b"[]\n", b'{"id":"\\ud800","sha256":"\\ud800","previous":"\\ud800","hash":"x"}\n']
)
def test_journals(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "chain.jsonl").write_bytes(content)
    (tmp_path / f"e{UGLY}.json").write_bytes(content)
    for words in ("list", "verify", "show e", "show \udcff", "undo e --yes", "resume e --yes"):
        end_of("journal", *words.split(), KCTL_JOURNAL=str(tmp_path))


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("codec", [4, 5, 6, 7])
def test_codecs_that_there_are_not(magic: int, codec: int, tmp_path: Path) -> None:
    """What lies behind the batch is found by a time, an offset or a key all the same."""
    records = [Record(number, 1000 + number, b"k", b"v") for number in range(3)]
    if magic == 2:
        batch = write_batch(records)
        odd = seal(read_header(batch)._replace(attributes=codec), batch[HEADER_SIZE:])
        sound = write_batch([Record(3, 2000, b"k", b"v")])
    else:
        message = bytearray(write_wrapper(magic, records, codec=1))
        message[17] = message[17] & ~7 | codec
        message[12:16] = crc32(message[16:]).to_bytes(4, "big")
        odd, sound = bytes(message), write_message(magic, 3, b"k", b"v", timestamp=2000)
    log = tmp_path / "orders-0" / f"{SEGMENT}.log"
    log.parent.mkdir()
    log.write_bytes(odd + sound)
    for words in ("--from-time 1001", "--from-offset 1", "--key k", "--from-time 1001 --format kctl", ""):
        if magic or "time" not in words:
            ran = rows("segment", "dump", "--records", *words.replace(" --format kctl", "").split(), log)
            assert [row["offset"] for row in ran.of("record")] == [3], words
        assert end_of("segment", "dump", "--records", *words.split(), log).status == 5
    (file,) = [row for row in rows("segment", "verify", log.parent).of("file") if row["type"] == "log"]
    assert file["damaged_bytes"] == 0
    assert "batch-unknown-codec" in rows("segment", "verify", log.parent).codes() or codec == 4


@pytest.mark.parametrize(
    "behind", [b"", b"[2026-11-21 13:00:00,000] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)\n"]
)
def test_logs_without_a_known_time(behind: bytes, tmp_path: Path) -> None:
    for broker in (1, 2):
        folder = tmp_path / f"broker-{broker}"
        folder.mkdir()
        (folder / "state-change.log").write_bytes(UNTIMED * 3 + behind)
    for words in ("timeline --fix-skew", "timeline", "merge --fix-skew", "merge --fix-skew --topic orders"):
        ran = rows("state-log", *words.split(), tmp_path)
        assert ran.status in (0, 3, 5), (words, ran.err)
        assert end_of("state-log", *words.split(), tmp_path).status == ran.status
        assert all(row["time"] is None for row in ran.rows if row.get("line") in (1, 2, 3)), words


@pytest.mark.parametrize("text", ["", "\n# nothing\n", "brokers = [1, 2]\n", "steps = []\n"])
def test_a_scenario_without_a_step_is_none(text: str, tmp_path: Path) -> None:
    (tmp_path / "empty.toml").write_text(text)
    for words in ((), ("--kafka-version", "0.10"), ("--compare", "0.10,2.8")):
        ran = end_of("replica", "simulate", tmp_path / "empty.toml", *words)
        assert (ran.status, ran.out) == (2, b"")
        assert "empty.toml: it has no [[steps]]" in ran.err


# --- the output of an audit, read back -----------------------------------------------------------------


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audited")
    log = folder / "evidence" / "orders-0" / f"{SEGMENT}.log"
    log.parent.mkdir(parents=True)
    log.write_bytes(LOG)
    end_of("audit", "run", folder / "evidence", "--out", folder / "out", "--jobs", "1")
    return folder / "out"


def every_part(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    """A change of every Parquet file of an audit."""

    def damage(folder: Path) -> None:
        for part in folder.rglob("*.parquet"):
            part.write_bytes(change(part.read_bytes()))

    return damage


def other_tables(folder: Path) -> None:
    for part in folder.rglob("*.parquet"):
        pq.write_table(pa.table({"x": [1], "file": [b"\xff"]}), part)


def other_values(folder: Path) -> None:
    for part in folder.rglob("*.parquet"):
        schema = pq.read_schema(part)
        pq.write_table(
            pa.table(
                [
                    pa.array([None, None], field.type)
                    if field.type != pa.string()
                    else pa.array(["[]", '{"x":1}'])
                    for field in schema
                ],
                schema=schema,
            ),
            part,
        )


def no_parts(folder: Path) -> None:
    for part in folder.rglob("*.parquet"):
        part.unlink()


@pytest.mark.parametrize(
    "damage",
    [
        every_part(lambda data: b""), every_part(lambda data: data[:100]), every_part(lambda data: bytes(len(data))),
        every_part(lambda data: data[:4] + bytes(byte ^ 0xFF for byte in data[4:200]) + data[200:]),
        no_parts, other_tables, other_values,
    ],
)  # fmt: skip
def test_damaged_tables(damage: Callable[[Path], None], audited: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(audited, folder)
    damage(folder)
    assert end_of("audit", "report", folder).status == 3
    assert end_of("audit", "sql", folder, "SELECT * FROM findings").status == (
        0 if damage is other_values else 3
    )
    end_of("audit", "run", "--merge", folder, "--out", tmp_path / "merged")


def part_is(make: Callable[[Path], None]) -> Callable[[Path], None]:
    return lambda folder: make(folder / "findings" / "z.parquet")


def table_is(make: Callable[[Path], None]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        shutil.rmtree(folder / "findings")
        make(folder / "findings")

    return damage


@pytest.mark.parametrize(
    "damage",
    [
        part_is(os.mkfifo), part_is(Path.mkdir), part_is(lambda path: path.symlink_to("/dev/zero")),
        part_is(lambda path: path.symlink_to(next(path.parent.glob("*.parquet")))),
        table_is(os.mkfifo), table_is(Path.touch), table_is(lambda path: path.symlink_to("/proc/self")),
    ],
)  # fmt: skip
def test_what_lies_in_the_place_of_a_table(
    damage: Callable[[Path], None], audited: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(audited, folder)
    damage(folder)
    for words in (
        ("report", folder), ("sql", folder, "SELECT 1"), ("run", "--merge", folder, "--out", tmp_path / "merged"),
    ):  # fmt: skip
        ran = kctl("audit", *words)
        assert ran.status == 3 and any(
            word in ran.err for word in ("a named pipe", "a folder", "a symbolic link", "not a table")
        ), ran.err


@pytest.mark.parametrize("content", ["[]", "null", "{}", '{"verdict": 3}', "[" * 100_000, "\0"])
def test_a_damaged_summary(content: str, audited: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(audited, folder)
    (folder / "summary.json").write_text(content)
    assert end_of("audit", "report", folder).status == 3
    assert end_of("audit", "sql", folder, "SELECT 1").status == 3


@pytest.mark.parametrize("output", ["text", "json"])
@pytest.mark.parametrize(
    ("statement", "status"),
    [
        ("", 2), (";", 2), ("SELECT", 2), ("SELECT '\udcff'", 2), ("SELECT * FROM nothing", 2), ("COPY (SELECT 1) TO '/x'", 2),
        ("SHOW TABLES", 0), ("SELECT {'a': date '2020-01-01'}, 'a'::BLOB, INTERVAL 1 DAY, uuid(), 'nan'::FLOAT, MAP {1: 2}", 0),
    ],
)  # fmt: skip
def test_statements(statement: str, status: int, output: str, audited: Path) -> None:
    assert end_of("audit", "sql", audited, statement, "--output", output).status == status


@pytest.mark.slow
def test_duckdb_tells_of_no_leaks_at_exit(audited: Path) -> None:
    for statement in ("", "SHOW TABLES", "SELECT * FROM nothing"):
        run = "import sys; sys.argv[0] = 'kctl'; from commands.main import run; run()"
        ran = subprocess.run(
            [sys.executable, "-c", run, "audit", "sql", audited, statement],
            capture_output=True,
            text=True,
            check=False,
        )
        assert len(errors_in(ran.stderr)) == (statement != "SHOW TABLES"), ran.stderr
