"""``python -m sentemb`` is the command ``sentemb``."""

from sentemb.cli import main

main(prog_name="sentemb")
