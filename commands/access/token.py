"""`kctl token`: delegation tokens of a cluster."""

from __future__ import annotations

from commands.access.sources import Recorded, recorded
from commands.cli.connecting import At, reads
from commands.cli.frame import Frame, command
from commands.cli.options import option
from commands.cli.render import Outcome
from commands.topic import note_problems
from kctl.cluster.state import Problem
from kctl.rows.access import TOKEN


@command("list", paged=True, status="0 listed · 2 wrong usage · 3 no connection, something could not be read")
@reads
@recorded
@option("--owner PRINCIPAL...", "Only tokens of this owner; repeatable.", into="owners")
def list_tokens(frame: Frame, at: At, source: Recorded, owners: tuple[str, ...]) -> Outcome:
    """List delegation tokens, with their owners, renewers and times.

    Brokers show a user its own tokens, and of others those that it may renew, or describe by a rule. The secret of a token
    is never read or shown.

    $ kctl token list --bootstrap-server kafka1:9093 --command-config client.properties
    $ kctl token list --owner User:app --output jsonl
    $ kctl token list --metadata /var/lib/kafka/__cluster_metadata-0
    """
    from commands.cli.evidence_options import bound_of
    from kctl.access.acl import check_principal
    from kctl.access.tokens import recorded_tokens, tokens_of

    wanted = {check_principal(owner) for owner in owners}
    problems: list[Problem] = []
    source.check()
    if source.folders:
        tokens = recorded_tokens(source.logs(), bound_of(source.as_of), problems)
        nothing = "there is no token"
    else:
        with at.open(frame) as cluster:
            tokens = tokens_of(cluster, problems)
            nothing = "there is no token that this user may see"
    note_problems(frame, problems)
    rows = (TOKEN.of(token) for token in tokens if not wanted or token.owner in wanted)
    return Outcome(rows, nothing=nothing)
