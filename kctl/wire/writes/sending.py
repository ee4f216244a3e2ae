"""Sends the write of a change: the modules of all requests, each imported when such a request is sent.

What a request is called stands here once, with the module that has it; this module imports none that sends.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module

from kctl.cluster.intent import Intent, Write
from kctl.cluster.rights import GROUP, RESOURCES
from kctl.wire.adapter import NoAnswer, Wire
from kctl.wire.reading import await_controller
from kctl.wire.rights import right_for
from kctl.wire.writes import kraft
from kctl.wire.writes.planning import content, name_of
from kctl.wire.writes.requests import (
    NOT_CONTROLLER,
    PATIENCE,
    PAUSE,
    REQUEST_TIMED_OUT,
    SENDERS,
    SENT_AGAIN,
    OwnRequest,
    RequestItem,
    Sender,
)

# Modules that have such a request as `REQUESTS[NAME]`: its outcome is not in the metadata.
OWN_REQUESTS = {
    "WriteTxnMarkers": "kctl.wire.transactions",
    "DeleteRecords": "kctl.wire.records",
    "OffsetCommit": "kctl.wire.group_changes",
    "OffsetDelete": "kctl.wire.group_changes",
    "DeleteGroups": "kctl.wire.group_changes",
    "LeaveGroup": "kctl.wire.group_changes",
    "AlterShareGroupOffsets": "kctl.wire.group_changes",
    "DeleteShareGroupOffsets": "kctl.wire.group_changes",
    "CreateAcls": "kctl.wire.acls",
    "DeleteAcls": "kctl.wire.acls",
    "AlterUserScramCredentials": "kctl.wire.users",
    "CreateDelegationToken": "kctl.wire.writes.tokens",
    "RenewDelegationToken": "kctl.wire.writes.tokens",
    "ExpireDelegationToken": "kctl.wire.writes.tokens",
    "Produce": "kctl.wire.recovering.producing",
}
# Modules that have the translation of such an intent as `TRANSLATIONS[KIND]`: what it stands on brokers have to be asked.
OWN_INTENTS = {
    "alter-acls": "kctl.wire.acls",
    "set-scram": "kctl.wire.users",
    "delete-scram": "kctl.wire.users",
    "create-token": "kctl.wire.writes.tokens",
    "renew-token": "kctl.wire.writes.tokens",
    "expire-token": "kctl.wire.writes.tokens",
}


def own_translation(intent: Intent) -> Callable[[Wire, Intent], list[Write]] | None:
    """What makes requests of an intent whose present state brokers have to be asked for; None for another intent."""
    module = OWN_INTENTS.get(intent.kind)
    if module is None:
        return None
    translation: Callable[[Wire, Intent], list[Write]] = import_module(module).TRANSLATIONS[intent.kind]
    return translation


def own_request(write: Write) -> OwnRequest | None:
    """The request of a write whose outcome brokers have to be asked for; None if the metadata shows it."""
    module = OWN_REQUESTS.get(name_of(write))
    if module is None:
        return None
    request: OwnRequest = import_module(module).REQUESTS[name_of(write)]
    return request


def send(wire: Wire, write: Write, *, validate_only: bool = False) -> list[RequestItem]:
    """Send a write to the broker that carries it out; returns the items that failed. Raises NoAnswer, TooOld.

    A request that no controller took is sent again to the one that is elected; one for which a quota is used up, when
    the broker allows.
    """
    sender, end = _sender(write), time.monotonic() + PATIENCE
    items = list(sender(wire, content(write), validate_only))
    while (codes := {item.error_code for item in items}) & SENT_AGAIN and time.monotonic() < end:
        if NOT_CONTROLLER in codes:
            await_controller(wire)
        else:
            wire.pause(PAUSE)
        items = list(sender(wire, content(write), validate_only))
    late = [item for item in items if item.error_code == REQUEST_TIMED_OUT]
    if late and not validate_only:
        message = late[0].error_message or "the broker did not get to it in time"
        raise NoAnswer(f"{late[0].what}: {message.rstrip('.')}")
    return [_denied(wire, write, item) for item in items if item.error_code]


def _denied(wire: Wire, write: Write, item: RequestItem) -> RequestItem:
    """The item, with the right that is missing where the broker says so."""
    after = content(write)
    name = item.topic or str(after.get("topic") or "")
    if RESOURCES.get(item.error_code) == GROUP:
        name = str(after.get("group") or after.get("entity_name") or "")
    elif not name and after.get("entity_type") == "topics":
        name = str(after["entity_name"])
    right = right_for(name_of(write), item.error_code, name)
    return item if right is None else item._replace(right=right, principal=wire.principal)


def _sender(write: Write) -> Sender:
    name = name_of(write)
    if (own := own_request(write)) is not None:
        return lambda wire, after, validate_only: own.send(wire, after)
    return SENDERS.get(name) or kraft.SENDERS[name]
