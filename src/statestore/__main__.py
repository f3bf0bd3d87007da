"""``python -m statestore``: the command line."""

import signal
import sys

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # while the program is being loaded, Ctrl-C just ends it

from statestore.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
