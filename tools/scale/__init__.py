"""What grows with a stream: planning by its segments and epochs, reading in order while it is scaled, readers, frames.

``python -m tools.scale planning|load|frames|followers|writers`` print numbers; the tests run small forms of the first
two.
"""
