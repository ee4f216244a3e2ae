"""controller.log of ZooKeeper clusters: the rest of what controllers print.

Source: `core/src/main/scala/kafka/controller` @ 0.8.1.1 to 3.9.0-rc3.
"""

from formats.log_templates import Template

CONTROLLER_MORE = ()
