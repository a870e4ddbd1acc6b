"""What noisy tables are fitted to: margins, raked tables, a tree of pairs, a pool of weighted rows."""
