"""What is said where a right is missing: the command line that grants it, which kctl takes."""

from __future__ import annotations

import shlex

import pytest

from commands.access.acl import create
from kctl.cluster.rights import UNKNOWN_PRINCIPAL, Right, command_for, grant


@pytest.mark.parametrize(
    ("right", "options"),
    [
        (Right("DescribeConfigs"), "--operation describe_configs --cluster"),
        (Right("Describe", "Topic", "*"), "--operation describe --topic '*'"),
        (
            Right("Describe", "Topic", "orders, payments"),
            "--operation describe --topic orders --topic payments",
        ),
        (Right("Read", "Group", "a, b c"), "--operation read --group 'a, b c'"),
        (Right("CreateTokens", "User", "User:bob"), "--operation create_tokens --user-principal User:bob"),
        (
            Right("Write", "TransactionalId", "kctl.", is_prefix=True),
            "--operation write --transactional-id kctl. --pattern prefixed",
        ),
        (Right("Read", "Group", "x*"), "--operation read --group 'x*'"),
        (Right("Describe", "DelegationToken", "x"), "--operation describe --delegation-token x"),
    ],
)
def test_the_command_that_grants_a_right(right: Right, options: str) -> None:
    line = command_for(right, "User:CN=a b")
    assert line == f"kctl acl create --principal 'User:CN=a b' {options}"
    given = create.make_context("create", shlex.split(line)[3:], resilient_parsing=False).params
    assert given["principals"] == ("User:CN=a b",)


def test_who_it_is_for_is_not_known() -> None:
    assert "--principal TYPE:NAME --operation" in grant([Right("Alter")], UNKNOWN_PRINCIPAL)
    assert ", and so for the others" in grant([Right("Alter"), Right("Describe")], "User:a")
