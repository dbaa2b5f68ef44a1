"""Module that the driver runs in a fork, to find out if forks work here. It prints the id of its process."""

import os
import sys

if __name__ == "__main__":
    sys.stdout.write(str(os.getpid()))
