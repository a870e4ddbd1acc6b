"""`python -m dalenius` is the command `dalenius`."""

from dalenius.app.cli import main

if __name__ == "__main__":
    main()
