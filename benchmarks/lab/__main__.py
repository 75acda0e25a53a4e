"""``python -m lab`` is the command ``sentemb`` with what the papers need besides.

It has the makers of their sets (``data clauses``, ``data labelled``) and the checks of the SIF
paper's likelihood and classifier (``gradcheck``).
"""

import lab.checks
import lab.commands
from sentemb.cli import main

lab.checks.register()
lab.commands.register()
main(prog_name="python -m lab")
