"""The controller's service over gRPC: its calls, their messages, and the tokens that they carry."""

from pravega_connector.controller import grpc_environment  # noqa: F401 - it has its effect when it is imported
