"""Fork server of Spark's Python processes: they start as forks of a process that has imported their modules."""
