"""What analysts may know of a table."""

from dalenius.app.cli.tables import summary

__all__ = ["summary"]
