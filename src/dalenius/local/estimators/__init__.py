"""From tallies to numbers: estimates with intervals, and what tidies them."""
