"""`python -m elmokit` is the same as `elmokit`."""

from elmokit.cli import main

main()
