"""Exact integers of a plan: the only package that touches rows."""
