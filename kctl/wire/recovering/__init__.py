"""Lost records produced to a running cluster again: the plan, and the requests."""
