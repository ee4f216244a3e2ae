"""How far an answer carries: questions, verdicts, what was missing, and the only sentences that say "sound"."""
