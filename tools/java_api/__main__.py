"""``python -m tools.java_api``: see the package."""

import sys

from tools.java_api import differences, java_methods, lines

if faults := differences(java_methods(), list(lines())):
    sys.exit("\n".join(faults))
