"""Rules and users in the evidence of a cluster."""

from collections.abc import Iterator
from contextlib import suppress

from formats.values import replace
from kctl.access.view import SETTINGS, AccessView, agreed, settings_of
from kctl.access_sources.recorded import view_of_image
from kctl.errors import KctlError
from kctl.evidence.model import FoundEvidence
from kctl.evidence.settings import settings_in
from kctl.internal_topics.metadata_rows import furthest_image, metadata_folders


def views_in(evidence: FoundEvidence) -> Iterator[AccessView]:
    """What the newest export of znodes says, and the metadata log that reaches furthest, each with its rules.

    The settings of the authorizer are those of the `server.properties` in the evidence. What cannot be read is a finding
    of other parts.
    """
    from kctl.zookeeper.access import read_access
    from kctl.zookeeper.snapshot import read_snapshot

    views = []
    newest = evidence.moments[-1:] or (None,)
    for export in evidence.znode_exports:
        if export.moment in newest or len(evidence.znode_exports) == 1:
            try:
                views.append(read_access(read_snapshot(export.path)))
            except KctlError:
                continue
    if folders := metadata_folders(evidence):
        with suppress(KctlError):
            views.append(view_of_image(furthest_image(folders)[0]))
    settings = []
    for stated in settings_in(evidence):
        try:
            values = {key: stated.values.get(key, "") for key in SETTINGS}
            settings.append(settings_of(values, str(stated.path)))
        except KctlError:
            continue
    for view in views:
        yield replace(view, settings=agreed(settings))
