"""`python -m tenfold` is `tenfold`."""

from tenfold.cli.main import run

if __name__ == "__main__":
    run()
