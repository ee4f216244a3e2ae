"""Whatever stands in a file: resources, or one error with a place."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kctl.cluster_file.document import parse_documents
from kctl.cluster_file.loading import HEAD, load
from kctl.cluster_file.other_tools import FORMATS, read_other
from kctl.cluster_file.resources import SECTIONS
from kctl.cluster_file.sections import ACL_KEYS, QUOTA_KEYS, TOPIC_KEYS, USER_KEYS
from kctl.errors import BadValue, KctlError

KEYS = st.sampled_from(
    [
        *(*HEAD, *SECTIONS, *TOPIC_KEYS, *ACL_KEYS, *QUOTA_KEYS, *USER_KEYS),
        *(
            "meta",
            "name",
            "spec",
            "kind",
            "metadata",
            "resource",
            "type",
            "operations",
            "acls",
            "authorization",
            "settings",
        ),
        *("a", "<default>", "1", "SCRAM-SHA-256", "x.y", "${a}", ""),
    ]
)
TEXTS = st.sampled_from(
    [
        "a",
        "1",
        "0",
        "-1",
        "",
        "User:a",
        "read",
        "all",
        "true",
        "literal",
        "1:2",
        "racks",
        "KafkaTopic",
        "KafkaUser",
        "${a}",
        "é\n",
    ]
) | st.text(max_size=5)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS
VALUES = st.recursive(
    SCALARS, lambda of: st.lists(of, max_size=3) | st.dictionaries(KEYS, of, max_size=4), max_leaves=12
)
DOCUMENTS = st.dictionaries(KEYS, VALUES, max_size=5)
PLACE = re.compile(r"\S+:[1-9][0-9]*: ")


@given(st.binary(max_size=60) | st.text("ab:-?[]{}&*!|>'\"%@`#, \n\t\\", max_size=40).map(str.encode))
@example(b"? ")
@example(b"- - -\n")
@example(b"%YAML 9.9\n---\n")
@example(b"!<tag:x> a")
def test_bytes_are_a_tree_or_an_error(data: bytes) -> None:
    try:
        parse_documents(data, "file")
    except BadValue as error:
        assert PLACE.match(error.message), error.message
        assert error.hint


def read(document: object, reader: Callable[[Path], object]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cluster.yaml"
        path.write_text(json.dumps(document))
        try:
            reader(path)
        except KctlError as error:
            # What names no line is a file that is not there, or one in which nothing of a tool is.
            assert PLACE.match(error.message) or " here" in error.message or "no such file" in error.message
            assert error.hint and "\n" not in error.message


@pytest.mark.slow
@given(DOCUMENTS)
def test_a_document_is_resources_or_an_error(document: object) -> None:
    read(document, lambda path: load([path], {}, {}))


@pytest.mark.slow
@given(DOCUMENTS, st.sampled_from(FORMATS))
def test_a_document_of_another_tool_is_resources_or_an_error(document: object, tool: str) -> None:
    read(document, lambda path: read_other(tool, path))
