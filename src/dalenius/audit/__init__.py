"""What tries to break the promise: the neighbour fuzzer (`fuzz`), the search for work (`work`), and audits to come."""
