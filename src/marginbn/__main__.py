"""``python -m marginbn``: the command line."""

from marginbn.cli import main

if __name__ == "__main__":
    main()
