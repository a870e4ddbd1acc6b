"""What the benchmark of learning needs."""
