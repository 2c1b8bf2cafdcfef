"""`python -m synmod` is the command `synmod`."""

from synmod.cli import main

if __name__ == "__main__":  # importing it runs nothing
    main()
