"""Rules and users in the metadata log of a KRaft cluster, as of an offset or a time."""

from collections.abc import Iterable
from pathlib import Path

from formats.znodes.security import SCRAM_MECHANISMS
from kctl.access.acl import Acl
from kctl.access.tokens import DelegationToken
from kctl.access.view import AccessView
from kctl.cluster.state import Problem
from kctl.internal_topics.cluster_image import ClusterImage
from kctl.internal_topics.metadata_rows import furthest_image
from kctl.internal_topics.reading import NOW, AsOf


def view_of_image(image: ClusterImage, problems: Iterable[Problem] = ()) -> AccessView:
    """What the image says; settings of the authorizer are not in it."""
    users: dict[str, dict[str, int | None]] = {}
    for name, mechanism in sorted(image.scram_users):
        known = SCRAM_MECHANISMS.get(mechanism, str(mechanism))
        users.setdefault(name, {})[known] = image.scram_iterations.get((name, mechanism))
    rules = (
        Acl.numbered(
            acl["resource_type"],
            acl["resource_name"],
            acl["pattern_type"],
            acl["principal"],
            acl["host"],
            acl["operation"],
            acl["permission_type"],
        )
        for acl in image.acls.values()
    )
    return AccessView(
        acls=tuple(rules),
        topics=sorted(image.names.values()),
        users={name: sorted(of) for name, of in users.items()},
        credentials=users,
        problems=tuple(problems),
    )


def read_recorded_access(folders: Iterable[Path], as_of: AsOf = NOW) -> AccessView:
    """The same of the copy of the metadata log that reaches furthest. Raises KctlError where none can be read."""
    image, trouble = furthest_image(folders, as_of)
    return view_of_image(
        image, (Problem(f"{part.file.name} at {part.position}", part.what) for part in trouble)
    )


def recorded_tokens(folders: Iterable[Path], as_of: AsOf, problems: list[Problem]) -> list[DelegationToken]:
    """The tokens in the copy of the metadata log that reaches furthest. Raises KctlError where none can be read."""
    image, trouble = furthest_image(folders, as_of)
    problems += [Problem(f"{part.file.name} at {part.position}", part.what) for part in trouble]
    return sorted(
        DelegationToken(
            name, token["owner"], token["requester"] or None, tuple(token["renewers"]),
            token["issue_timestamp"], token["expiration_timestamp"], token["max_timestamp"],
        )
        for name, token in image.delegation_tokens.items()
    )  # fmt: skip
