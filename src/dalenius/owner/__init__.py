"""What the owner does: protect, refresh, limits found, the index built, paths, public tables."""
