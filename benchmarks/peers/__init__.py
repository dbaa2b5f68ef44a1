"""Compared programs. Each is a separate process that answers requests until its standard input ends."""
