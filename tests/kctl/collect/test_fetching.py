"""The command that a verdict names for what is missing is one that kctl understands, whatever a topic is called."""

import shlex

import pytest

from kctl.judging.fetching import other_replicas, replica_of
from kctl.judging.judgement import for_all
from kctl.model import TopicPartition


@pytest.mark.parametrize("topic", ["orders", "it's", "$(reboot)", "a b", "-x"])
def test_a_name_in_the_evidence_is_one_word_of_the_command(topic: str) -> None:
    partition = TopicPartition(topic, 3)
    for missing in (replica_of(2, partition), other_replicas(partition), replica_of(2, partition, "before")):
        words = shlex.split(missing.get)
        assert words[words.index("--topic") + 1] == topic and words[words.index("--partition") + 1] == "3"
        of_all = for_all(missing.get, *partition)
        assert (
            "--topic" not in of_all
            and "--partition" not in of_all
            and of_all.startswith("kctl collect --to ")
        )
