"""Embedded servers: a real Pravega on this machine, started from Python, ended with it."""

from connector.local._pravega import LocalPravega

__all__ = ["LocalPravega"]
