"""What grows with a stream: planning by its segments and epochs, queries, reading in order while it is scaled, readers.

``python -m benchmarks.scale planning|curves|load|frames|followers|writers|write`` print numbers. Tests run small
forms of ``planning`` and ``load``.
"""
