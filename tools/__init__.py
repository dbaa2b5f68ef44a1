"""Checks, generators and models for developers: ``python -m tools.NAME``. No installed package contains them."""
