from dalenius.app.cli.tables import summary

__all__ = ["summary"]
