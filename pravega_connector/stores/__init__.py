"""Requests to segment stores, and how the segments of a stream follow each other."""
