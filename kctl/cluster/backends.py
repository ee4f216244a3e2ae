"""What each backend can, and what its answers mean: a table, asked in the place of a backend's name."""

from typing import NamedTuple


class Abilities(NamedTuple):
    """What a backend can."""

    compare_versions: bool
    """Refuse a write where what it was computed from has changed."""
    ask_brokers: bool
    """Ask brokers: for their version, their loggers, their own settings, and the values in force."""
    move_disks: bool
    """Move replicas between the log directories of a broker."""
    cancel_moves: bool
    """Have the controller end a move."""
    have_values_checked: bool
    """Have the controller check values of configurations before it takes them."""
    keep_configs_of_dead: bool
    """Read and write the configuration of a broker that is not alive."""
    name_all_topics: bool
    """List the names of topics that this user may not read."""
    write_past_brokers: bool
    """Write what brokers would check and make themselves."""


ZNODES = Abilities(
    compare_versions=True,
    ask_brokers=False,
    move_disks=False,
    cancel_moves=False,
    have_values_checked=False,
    keep_configs_of_dead=True,
    name_all_topics=True,
    write_past_brokers=True,
)
BACKENDS = {
    "zookeeper": ZNODES,
    "snapshot": ZNODES._replace(write_past_brokers=False),
    "admin": Abilities(
        compare_versions=False,
        ask_brokers=True,
        move_disks=True,
        cancel_moves=True,
        have_values_checked=True,
        keep_configs_of_dead=False,
        name_all_topics=False,
        write_past_brokers=False,
    ),
}
