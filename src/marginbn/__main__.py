"""``python -m marginbn`` and the script ``marginbn``: the command line."""

from __future__ import annotations

import os

try:
    from marginbn.interrupts import exit_if_interrupted, exit_on_signals
except KeyboardInterrupt:  # the first moments of a process
    os.write(2, b"marginbn: interrupted before there was a result\n")
    os._exit(130)


def main() -> None:
    """Entry point. Signals are heard before anything else is imported."""
    exit_on_signals()
    from marginbn.cli import main as run

    try:
        run()
    except SystemExit as end:
        exit_if_interrupted(end.code)
        raise


if __name__ == "__main__":
    main()
