"""Service of the controller over gRPC: calls, messages and tokens."""
