"""kctl over Kafka's own protocol on real clusters, with KRaft and with ZooKeeper."""
