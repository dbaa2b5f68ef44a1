"""The programs that are compared. Each is a process of its own that answers requests until its standard input ends."""
