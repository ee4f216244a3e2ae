"""What of kafka-python is done here in its place, since it costs too much there: importing it, receiving, large answers."""
