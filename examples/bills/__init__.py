"""Orders and a bill for each, from programs that share the work, without Spark."""
