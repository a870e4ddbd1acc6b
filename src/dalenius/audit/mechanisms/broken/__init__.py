"""The teaching part: mechanisms that claim an ε they do not have. Nothing else in the product imports them."""
