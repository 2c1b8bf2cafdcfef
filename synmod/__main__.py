"""`python -m synmod` is the command `synmod`."""

from synmod.cli import main

main()
