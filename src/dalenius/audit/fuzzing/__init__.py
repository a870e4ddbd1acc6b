"""The parts of the neighbour fuzzer: what is drawn (policies, tables, questions), and where it is run."""
