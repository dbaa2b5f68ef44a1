"""What grows with a stream: planning by its segments and epochs, reading in order while it is scaled, frames of it.

``python -m tools.scale planning``, ``load`` and ``frames`` print numbers; the tests run small forms of the first two.
"""
