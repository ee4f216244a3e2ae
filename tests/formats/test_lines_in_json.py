"""Lines of logs in values of JSON: what is passed over by a quick look holds none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.broker_logs.exports import fields
from kctl.evidence.broker_logs import may_be_export

LINE = "[2026-11-20 10:00:00,000] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)"
AS_NUMBERS = list(LINE.encode())
TEXTS = (
    *("", "a", "10:00:00", "2026-11-20 10:00:00", "2026-11-20T10:00:00Z", "info", "ERROR", "started"),
    *("kafka.server.KafkaServer", "state.change.logger", "kafka", LINE, f"two\n{LINE}", f'{{"message": "{LINE}"}}'),
)  # fmt: skip
KEYS = (
    "message",
    "log",
    "level",
    "logger",
    "time",
    "timestamp",
    "host",
    "broker-1",
    "name",
    "value",
    "scope",
)
values = st.recursive(
    st.sampled_from((*TEXTS, None, 1, 1_700_000_000_000, True)) | st.just(AS_NUMBERS),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=12,
)


@given(values)
def test_what_is_passed_over_holds_no_line(value: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fields, "_may_hold_lines", lambda value, depth: True)
        looked_through = fields.Fields().lines(value, 1)
    assert fields.Fields().lines(value, 1) == looked_through


@pytest.mark.parametrize(
    ("head", "may"),
    [
        (LINE.encode(), True),
        (b'{"level": "info", "logger": "kafka.server.KafkaServer"}', True),
        (b'{"level":"Error","host":"kafka-1","message":"x"}', True),
        (b'"{\\"level\\":\\"warn\\",\\"host\\":\\"kafka-1\\"}"', True),
        (b"level=info host=kafka-1 msg=started", True),
        (b'{"logger": "state.change.logger", "message": "x", "time": 1700000000}', True),
        (b"2026-11-20 10:00:00,000 [KafkaServer] [KafkaServer id=1] started", True),
        (b"2026-11-20T10:00:00Z [LogManager] Loaded 0 logs of kafka", True),
        (f'{{"host": "kafka-1", "MESSAGE": {AS_NUMBERS}}}'.encode(), True),
        (b'{"kind":"finding","message":"ERROR"}', False),
        (b'{"error": null, "host": "kafka-1", "replicas": [1, 2, 3]}', False),
        (b"Dumping /var/lib/kafka/data/orders-0/00000000000000000000.log", False),
        (b"an error of somebody else's", False),
        (b"", False),
    ],
)
def test_a_quick_look(head: bytes, may: bool) -> None:
    assert may_be_export(head) == may
