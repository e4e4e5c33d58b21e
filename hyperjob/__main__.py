"""`python -m hyperjob` is the `hyperjob` command."""

from hyperjob.cli import main

if __name__ == "__main__":
    main(prog_name="hyperjob")
