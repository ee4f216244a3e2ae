"""Lost records produced to a running cluster again: what is missing there, the plan, and the proof that it is there."""
