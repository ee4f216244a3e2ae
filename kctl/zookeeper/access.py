"""Rules and users in ZooKeeper: read from znodes, live or recorded.

Source: core/src/main/scala/kafka/zk/ZkData.scala @ 3.9.0-rc3 (ZkAclStore)
"""

from collections.abc import Iterator

from formats.errors import FormatError
from formats.secrets import WITHHELD
from formats.znodes.cluster import parse_config
from formats.znodes.security import SCRAM_MECHANISMS, parse_acls, parse_scram, protocol_name
from kctl.access.acl import Acl
from kctl.access.tokens import DelegationToken
from kctl.access.view import AccessView
from kctl.cluster.state import Problem
from kctl.zookeeper.reading import read_cluster
from kctl.zookeeper.store import HiddenZnodes, ZnodeReader

STORES = {"literal": "/kafka-acl", "prefixed": "/kafka-acl-extended/prefixed"}
USERS = "/config/users"
TOKENS = "/delegation_token/tokens"


def read_acls(reader: ZnodeReader, problems: list[Problem]) -> Iterator[Acl]:
    """The rules of every resource; a znode that cannot be read is a problem."""
    for pattern, root in STORES.items():
        types = reader.children(root) or []
        folders = [f"{root}/{kind}" for kind in types]
        for kind, folder, names in zip(types, folders, reader.children_many(folders), strict=True):
            paths = [f"{folder}/{name}" for name in names or ()]
            for name, path, node in zip(names or (), paths, reader.get_many(paths), strict=True):
                if node is None:
                    continue
                try:
                    rules = parse_acls(node.data) if node.data else ()
                except FormatError as error:
                    problems.append(Problem(path, error.what))
                    continue
                for rule in rules:
                    yield Acl(
                        protocol_name(kind).lower(), name, pattern, rule.principal, rule.host,
                        protocol_name(rule.operation).lower(), rule.permission_type.lower(),
                    )  # fmt: skip


def read_users(reader: ZnodeReader, problems: list[Problem]) -> dict[str, dict[str, str]]:
    """The credentials of each user by mechanism, as they are stored."""
    from urllib.parse import unquote

    names = reader.children(USERS) or []
    paths = [f"{USERS}/{name}" for name in names]
    users: dict[str, dict[str, str]] = {}
    for name, path, node in zip(names, paths, reader.get_many(paths), strict=True):
        if node is None or not node.data:
            continue
        try:
            config = parse_config(node.data).config
        except FormatError as error:
            problems.append(Problem(path, error.what))
            continue
        credentials = {key: config[key] for key in SCRAM_MECHANISMS.values() if key in config}
        if credentials:
            users[unquote(name)] = credentials
    return users


def iterations_of(credential: str | None) -> int | None:
    """The iterations of a stored credential; None without one, 0 for one that is redacted or cannot be read."""
    if credential is None:
        return None
    try:
        return parse_scram(credential).iterations
    except FormatError:
        return 0


def read_access(reader: ZnodeReader, *, rules_only: bool = False) -> AccessView:
    """What the znodes say, without users for `rules_only`; settings of the authorizer are not among them.

    Raises KctlError if there is no cluster.
    """
    state = read_cluster(reader, (), partition_states=False)
    problems = list(state.problems)
    acls = tuple(read_acls(reader, problems))
    users = None
    try:
        if not rules_only:
            users = {name: sorted(known) for name, known in read_users(reader, problems).items()}
    except HiddenZnodes as hidden:
        problems.append(Problem("users", hidden.message, is_hidden=True))
    return AccessView(
        acls=acls,
        kafka_version=state.kafka_version,
        topics=state.topic_names,
        users=users,
        problems=tuple(problems),
    )


def read_tokens(reader: ZnodeReader, problems: list[Problem]) -> Iterator[DelegationToken]:
    """The tokens as they are stored; of one that cannot be read, a problem.

    Source: core/src/main/scala/kafka/server/DelegationTokenManagerZk.scala @ 3.9.0-rc3
    """
    from formats.znodes.security import parse_delegation_token

    names = reader.children(TOKENS) or []
    paths = [f"{TOKENS}/{name}" for name in names]
    for name, path, node in zip(names, paths, reader.get_many(paths), strict=True):
        if node is None:
            continue
        try:
            token = parse_delegation_token(node.data)
        except FormatError as error:
            is_withheld = node.data.startswith(WITHHELD)
            problems.append(Problem(path, "the export leaves out its content" if is_withheld else error.what))
            continue
        yield DelegationToken(
            name, token.owner, token.requester, token.renewers,
            token.issue_timestamp, token.expiration_timestamp, token.max_timestamp,
        )  # fmt: skip
