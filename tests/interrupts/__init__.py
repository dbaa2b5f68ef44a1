"""Interrupts at every line of the client that the caller's thread runs."""
