"""The rules of Kafka's replication as pure functions, each with the versions in which it holds.

Values in, values out: no file, no clock. `kctl replica simulate` runs them as a model, the forensic commands
ask them what a broker would have done.
"""
