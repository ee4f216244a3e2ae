"""A cluster in a file: export, difference, and the plan that makes a cluster as files say."""
