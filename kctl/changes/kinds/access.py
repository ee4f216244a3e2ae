"""Rules of access, and credentials of users."""

from collections.abc import Mapping
from typing import ClassVar

from formats.words import counted
from kctl.access.acl import Acl
from kctl.changes.kinds.codecs import TEXTS
from kctl.cluster.intent import Intent, IntentCodec

ACLS = IntentCodec(
    lambda value: [acl._asdict() for acl in value], lambda value: tuple(Acl.from_json(row) for row in value)
)


class AlterAcls(Intent, frozen=True, kw_only=True):
    """Create rules that are not there and delete rules that are. Inverse: exchanged.

    Rules are sets: what is there already, or gone already, is left as it is.
    """

    kind: ClassVar[str] = "alter-acls"
    codecs: ClassVar[Mapping[str, IntentCodec]] = {"added": ACLS, "removed": ACLS}
    added: tuple[Acl, ...] = ()
    removed: tuple[Acl, ...] = ()

    def __str__(self) -> str:
        parts = (("create", self.added), ("delete", self.removed))
        return " and ".join(
            f"{verb} {acls[0]}" if len(acls) == 1 else f"{verb} {counted(len(acls), 'rule')}"
            for verb, acls in parts
            if acls
        )

    def inverse(self) -> Intent:
        return AlterAcls(added=self.removed, removed=self.added)


class SetScram(Intent, frozen=True, kw_only=True):
    """Give a user a password, which is nowhere kept. Inverse: delete the credentials, where there were none before."""

    kind: ClassVar[str] = "set-scram"
    codecs: ClassVar[Mapping[str, IntentCodec]] = {"mechanisms": TEXTS, "previous_mechanisms": TEXTS}
    needs_secret: ClassVar[bool] = True
    final: ClassVar[str] = "the former password is not kept: set one again with `kctl user set-password`"
    user: str
    mechanisms: Mapping[str, int]  # iterations by mechanism
    previous_mechanisms: Mapping[str, int]  # those of them that there were

    def __str__(self) -> str:
        verb = "set the password" if self.previous_mechanisms else "create credentials"
        return f"{verb} of user {self.user} ({', '.join(sorted(self.mechanisms))})"

    def inverse(self) -> Intent:
        if self.previous_mechanisms:
            return Intent.inverse(self)
        return DeleteScram(user=self.user, mechanisms=self.mechanisms)

    def is_shown_by_users(self, users: Mapping[str, Mapping[str, int | None]]) -> bool:
        """Whether the user is there, with the mechanisms that it was to have; another password looks like the former one."""
        if self.previous_mechanisms:
            return False
        return users.get(self.user, {}).items() >= self.mechanisms.items()


class DeleteScram(Intent, frozen=True, kw_only=True):
    """Take credentials of a user away. No inverse: the password is not kept."""

    kind: ClassVar[str] = "delete-scram"
    codecs: ClassVar[Mapping[str, IntentCodec]] = {"mechanisms": TEXTS}
    final: ClassVar[str] = (
        "the password is not kept: create the user again with `kctl user create`, with a new one"
    )
    user: str
    mechanisms: Mapping[str, int]  # iterations by mechanism

    def __str__(self) -> str:
        return f"delete credentials of user {self.user} ({', '.join(sorted(self.mechanisms))})"
