"""The fixtures of :mod:`pravega_connector.testing.pytest_plugin`, until environments are installed again."""

from pravega_connector.testing.pytest_plugin import *  # noqa: F403
