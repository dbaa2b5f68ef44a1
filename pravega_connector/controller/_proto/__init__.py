"""Code generated from ``schemas/controller.proto``; see ``tools.regenerate``."""
