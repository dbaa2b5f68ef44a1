"""The controller's service over gRPC: its calls, their messages, and the tokens that they carry."""
