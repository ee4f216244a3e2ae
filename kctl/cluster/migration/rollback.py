"""What is left to do after a migration to KRaft was rolled back.

Source: metadata/src/main/java/org/apache/kafka/metadata/migration/KRaftMigrationDriver.java @ 3.4.0 to 3.9.0
(WaitForControllerQuorumEvent, BecomeZkControllerEvent): with /migration still there, a controller takes the copy for
done and writes its metadata to ZooKeeper (SYNC_KRAFT_TO_ZK), those of before the rollback, or none if it was formatted anew.
Without the znode a controller that has the old metadata does nothing, and one that is formatted anew copies again.
"""

NEXT_STEP = (
    "with it a KRaft controller that starts (3.4 to 3.9) copies nothing and writes its own metadata, old or empty, over "
    "ZooKeeper's: stop the controllers, delete the znode, and format their directories anew before another migration"
)
