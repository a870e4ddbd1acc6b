"""What tries to break the promise: the neighbour fuzzer (`fuzz`), and the attacks and audits to come."""
