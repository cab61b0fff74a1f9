"""Quality on sets of questions with known evidence: what `memlane eval` runs."""
