"""From a question to a release: SQL is parsed, restricted, bounded, priced and compiled; engines run the plan."""
