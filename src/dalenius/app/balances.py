"""Budgets as the command line and the server tell them."""

from dalenius.app.cli.budget import totals, written

__all__ = ["totals", "written"]
