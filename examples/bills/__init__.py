"""Orders and a bill for each, by programs that share the work; no Spark."""
