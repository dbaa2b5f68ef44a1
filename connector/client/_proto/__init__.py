"""Code generated from ``schemas/controller.proto``; see :mod:`connector.client._proto.regenerate`."""
