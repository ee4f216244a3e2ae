"""The rules of Kafka's replication as pure functions, each with the versions in which it holds.

No file, no clock. `kctl replica simulate` uses them as a model; the forensic commands use them to tell what a
broker would have done.
"""
