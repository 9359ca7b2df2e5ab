"""`python -m planetwire` is the command `planetwire`."""

from planetwire.cli import main

if __name__ == "__main__":
    main()
