"""What grows with a stream: planning by its segments and epochs, reading in order while it is scaled, its readers.

``python -m tools.scale planning|load|followers|writers`` print numbers; the tests run small forms of the first two.
"""
