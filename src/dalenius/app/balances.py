from dalenius.app.cli.budget import totals, written

__all__ = ["totals", "written"]
