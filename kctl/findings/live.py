"""Findings about the replicas of a running cluster."""

from kctl.findings import error, info, warning

REPLICA_BEHIND = info("""replica-behind-watermark
    Broker {broker_id}'s high watermark of {partition} is {high_watermark}, the leader's {leader}: compared up to it.
    A broker does not return records above a replica's own high watermark, so these were not compared.
    A replica that is catching up, or out of the ISR.
    Verify again when it is in the ISR.""")
REPLICA_UNREACHABLE = warning("""replica-not-verified
    Broker {broker_id}'s replica of {partition} was not compared from offset {start} on: {reason}.
    The verdict covers the other replicas.
    The broker is down or does not answer, its disk has failed, or it cannot read its own files.
    Check that broker; `kctl segment verify` on its log directory shows what is wrong with the files.""")
ALL_DAMAGED = error("""replica-batch-damaged-everywhere
    All {count:replica} of {partition} hold the same damaged batch at offset {start}.
    The bytes are the same on all brokers and their CRC is wrong: followers copied damaged bytes from the leader.
    A memory or disk fault on the leader before the followers fetched, or a wrong CRC of a producer that was accepted.
    No replica has the records; look for them at their source, in a tier or in a backup.""")
