"""What the fuzzer and the search are made of: data sets and questions that are drawn, where they run, and checks."""
