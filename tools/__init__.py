"""Programs of those who work on this project: ``python -m tools.NAME``. No package that is installed has them.

``fuzz`` reads mutated events and bombs, ``model`` explores the commit protocol, ``scale`` prints how planning and load
grow, ``faults`` kills and cuts what runs, ``avro_matrix`` compares three implementations of Avro's schema resolution,
``relock`` makes the lists of the servers' jars and of the Python packages. Their short forms are tests.
"""
