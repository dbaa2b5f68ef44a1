"""What grows with a stream: planning by its segments and epochs, and reading in order while it is scaled.

``python -m tests.scale planning`` and ``python -m tests.scale load`` print numbers; the tests run small forms of both.
"""
