"""The project's packages: built, served by an index on this machine, installed as users do, tried.

``python -m tools.packages install`` builds the sdist and of it the wheel, serves both on loopback as a package index,
and makes a fresh environment for each Python that it finds and each extra: alone, all together, none. pip installs
there what it needs, of ours only from that index. Then every public name is loaded, and each extra is used or says that
it is missing (:mod:`tools.packages.extras`). The code of README.md and of the quick start that needs no Spark runs on
an in-process server. ``python -m tools.packages release`` checks whether a tag may be published.
"""
