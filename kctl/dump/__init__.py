"""Files of a partition folder as rows, or as the text of Kafka's own dump tool."""
