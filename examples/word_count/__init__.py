"""The classic pair of examples for a stream store: lines of text to a stream, and a count of their words."""
