"""What grows with a stream: planning by its segments and epochs, and reading in order while it is scaled.

``python -m tools.scale planning`` and ``python -m tools.scale load`` print numbers; the tests run small forms of both.
"""
