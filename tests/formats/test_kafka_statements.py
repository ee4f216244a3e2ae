"""The list of log statements that no template covers."""

from tests.kafka_statements import is_covered, statements

SOURCE = """
  info(s"Leader $tp starts at ${f(x, "a")}, " +
    s"now (really) ${m.map { y => y }}")
  log.warn("Found {} in " + file.name + ", gone", a, b)
  error("From %d to %s".format(1, two))
  debug("not this")
  logger.info("Fencing broker {} at epoch {} because its session has timed out.", id, epoch);
"""


def test_statements_of_scala_and_java_are_found_with_a_mark_for_each_value() -> None:
    found = [(s.level, s.sentence.replace("\0", "#")) for s in statements(SOURCE, "X.scala")]
    assert found == [
        ("info", "Leader # starts at #, now (really) #"),
        ("warn", "Found # in #, gone"),
        ("error", "From # to #"),
        ("info", "Fencing broker # at epoch # because its session has timed out."),
    ]
    assert [is_covered(sentence.replace("#", "\0")) for _, sentence in found] == [False, False, False, True]
