"""What can be said about the replicas of a running cluster."""

from kctl.findings import error, info, warning

REPLICA_BEHIND = info("""replica-behind-watermark
    Broker {broker_id}'s high watermark of {partition} is {high_watermark}, the leader's {leader}: compared up to it.
    What lies above a replica's own high watermark is not given to clients, so it could not be compared.
    A replica that is catching up, or out of the ISR.
    Verify again when it is in the ISR.""")
REPLICA_UNREACHABLE = warning("""replica-not-verified
    Broker {broker_id}'s replica of {partition} was not compared from offset {start} on: {reason}.
    The verdict covers the other replicas.
    A broker that is down or does not answer, a replica on a failed disk, or one that cannot read its own bytes.
    Look at that broker; `kctl segment verify` on its log directory says what is wrong with the files.""")
ALL_DAMAGED = error("""replica-batch-damaged-everywhere
    All {count} replicas of {partition} hold the same damaged batch at offset {start}.
    The bytes are the same on all brokers and their CRC is wrong: followers copied damaged bytes from the leader.
    A fault of memory or disk on the leader before the followers fetched, or a producer's broken CRC let through.
    No replica has the records; look for them where they came from, or in a tier or a backup.""")
