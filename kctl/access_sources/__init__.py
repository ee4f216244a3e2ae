"""Rules, users and tokens of a cluster as its sources tell them: brokers, znodes, a metadata log, evidence."""
