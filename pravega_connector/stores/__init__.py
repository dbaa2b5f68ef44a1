"""Requests to segment stores, and the succession of a stream's segments."""
