"""Seeded demo tables. Made-up people: nothing here needs protection, and no privacy code stands here."""
