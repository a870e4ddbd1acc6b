"""The one way out: kind, price, charge, pace, look, store, receipt."""
