"""Delegation tokens in recordings: znodes and the metadata log hold the same."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path

from tests.conftest import recording, rows

RECORDED = recording("migration/3.9.1-clean")


def test_znodes_and_the_metadata_log_list_the_same() -> None:
    by_znodes = rows("token", "list", "--snapshot", RECORDED / "hybrid" / "znodes.jsonl")
    by_log = rows("token", "list", "--metadata", RECORDED / "hybrid" / "__cluster_metadata-0")
    (token,) = by_znodes.of("token")
    assert (by_znodes.status, by_log.status, by_log.of("token")) == (0, 0, [token])
    assert (token["owner"], token["renewers"]) == ("User:alice", [])
    assert token["issue_timestamp"] < token["expiry_timestamp"] < token["max_timestamp"]
    assert not [key for key in token if "hmac" in key]
    other = rows(
        "token", "list", "--owner", "User:bob", "--metadata", RECORDED / "hybrid" / "__cluster_metadata-0"
    )
    assert (other.status, other.rows) == (0, [])


def test_what_an_export_leaves_out_is_said(tmp_path: Path) -> None:
    export = tmp_path / "znodes.jsonl"
    text = (RECORDED / "hybrid" / "znodes.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    for line in lines:
        if line["path"].startswith("/delegation_token/tokens/"):
            line["data"] = b64encode(b"(redacted)").decode()
    export.write_text("".join(json.dumps(line) + "\n" for line in lines))
    ran = rows("token", "list", "--snapshot", export)
    assert ran.status == 3 and ran.of("token") == []
    assert "the export leaves out its content" in ran.err and "/delegation_token/tokens/" in ran.err
