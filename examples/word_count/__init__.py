"""The classic pair of a stream store's connectors: lines of text into a stream, and the words in them counted."""
