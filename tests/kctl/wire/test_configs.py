"""Configurations of topics decoded by hand say what the usual decoder says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kctl.wire.answers.configs import (
    SET,
    SET_FOR_TOPICS,
    DescribeConfigsInForceRequest,
    DescribeSetConfigsRequest,
    decoded,
    decoded_in_force,
    described,
)
from kctl.wire.protocol.messages import DescribeConfigsRequest, DescribeConfigsResponse

TEXTS = st.text(max_size=300)
CONFIGS = st.tuples(TEXTS, st.none() | TEXTS, st.sampled_from([0, 1, 4, 5]), st.none() | TEXTS)
RESULTS = st.lists(st.tuples(TEXTS, st.sampled_from([0, 3, 29]), st.lists(CONFIGS, max_size=5)), max_size=4)


def encoded(
    results: list[tuple[str, int, list[tuple[str, str | None, int, str | None]]]], resource_type: int = 2
) -> bytes:
    kind = DescribeConfigsResponse.DescribeConfigsResult
    listed = [
        kind(
            error_code=error,
            error_message="no" if error else None,
            resource_type=resource_type,
            resource_name=name,
            configs=[
                kind.DescribeConfigsResourceResult(
                    name=key,
                    value=value,
                    read_only=False,
                    config_source=source,
                    is_sensitive=False,
                    synonyms=[],
                    config_type=2,
                    documentation=documentation,
                )
                for key, value, source, documentation in configs
            ],
        )
        for name, error, configs in results
    ]
    return bytes(DescribeConfigsResponse(throttle_time_ms=7, results=listed).encoded(4))


@pytest.mark.slow
@settings(deadline=None)
@given(RESULTS, st.sampled_from([(2, SET_FOR_TOPICS), (4, SET)]))
def test_what_topics_and_brokers_set_is_found(
    results: list[tuple[str, int, list[tuple[str, str | None, int, str | None]]]],
    wanted: tuple[int, tuple[int, ...]],
) -> None:
    """A value in a broker's own file counts for the broker; each topic would tell it again."""
    resource_type, sources = wanted
    answer = decoded(encoded(results, resource_type))
    assert answer.throttle_time_ms == 7
    found = answer.results
    assert [(one.resource_name, one.error_code) for one in found] == [(n, e) for n, e, _ in results]
    for one, (_, _, configs) in zip(found, results, strict=True):
        set_by_it = [(key, value, source) for key, value, source, _ in configs if source in sources]
        assert list(map(tuple, one.configs)) == set_by_it


def test_an_answer_that_is_cut_off_is_an_error() -> None:
    data = encoded([("orders", 0, [("retention.ms", "1000", 1, None)])])
    for size in range(5, len(data) - 2):
        with pytest.raises(ValueError):
            decoded(data[:size])


def test_older_forms_are_decoded_as_usual() -> None:
    for kind in (DescribeSetConfigsRequest, DescribeConfigsInForceRequest):
        for version, is_quick in ((2, False), (4, True)):
            data = DescribeConfigsResponse(results=[]).encoded(version)
            found = kind.answered(memoryview(data), version)
            assert isinstance(found, DescribeConfigsResponse) != is_quick and list(found.results) == []


RESULT = DescribeConfigsResponse.DescribeConfigsResult
CONFIG = RESULT.DescribeConfigsResourceResult
FEW = st.sampled_from(
    ["retention.ms", "a", "b", "", "ü" * 70]
)  # names and values that come again, in other keys too
IN_FORCE = st.builds(
    CONFIG,
    name=FEW,
    value=st.none() | FEW,
    read_only=st.booleans(),
    config_source=st.integers(0, 8),
    is_sensitive=st.booleans(),
    synonyms=st.lists(
        st.builds(CONFIG.DescribeConfigsSynonym, name=FEW, value=st.none() | FEW, source=st.integers(1, 5)),
        max_size=2,
    ),
    config_type=st.integers(0, 9),
    documentation=st.none() | TEXTS,
)


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(st.tuples(FEW, st.sampled_from([0, 3]), st.lists(IN_FORCE, max_size=6)), max_size=6))
def test_every_key_is_told_as_usual(results: list[tuple[str, int, list[Any]]]) -> None:
    listed = [
        RESULT(
            error_code=error, error_message="no" if error else None, resource_type=2, resource_name=name,
            configs=configs,
        )
        for name, error, configs in results
    ]  # fmt: skip
    data = bytes(DescribeConfigsResponse(throttle_time_ms=7, results=listed).encoded(4))
    answer = decoded_in_force(data)
    assert answer.throttle_time_ms == 7
    found = answer.results
    assert [(r.resource_name, r.error_code, r.error_message) for r in found] == [
        (r.resource_name, r.error_code, r.error_message) for r in listed
    ]
    assert [list(map(told, r.configs)) for r in found] == [list(map(told, r.configs)) for r in listed]


def told(one: Any) -> tuple[object, ...]:
    synonyms = [(s.name, s.value, s.source) for s in one.synonyms]
    names = ("name", "value", "read_only", "config_source", "is_sensitive", "config_type", "documentation")
    return (*(getattr(one, name) for name in names), synonyms)


def test_what_two_topics_share_is_decoded_once() -> None:
    data = encoded([(name, 0, [("retention.ms", "1000", 1, None)]) for name in ("a", "b")])
    a, b = decoded_in_force(data).results
    assert a.configs[0] is b.configs[0]
    for size in range(5, len(data) - 2):
        with pytest.raises(ValueError):
            decoded_in_force(data[:size])


@pytest.mark.parametrize("version", range(1, 5))
def test_what_to_describe_has_the_bytes_of_the_usual_class(version: int) -> None:
    usual = DescribeConfigsRequest(
        resources=[
            DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=2, resource_name=name, configuration_keys=["retention.ms"]
            )
            for name in ("orders", "clicks")
        ]
    )
    given = described(2, ["orders", "clicks"], ["retention.ms"])
    assert given.encoded(version) == usual.encoded(version)
