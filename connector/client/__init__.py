"""A segment-level Pravega client: the controller, and what reads and writes segments."""

from __future__ import annotations

from connector.client._controller import ControllerClient
from connector.client._policies import RetentionPolicy, ScalingPolicy, StreamConfig, Successor

__all__ = ["ControllerClient", "RetentionPolicy", "ScalingPolicy", "StreamConfig", "Successor"]
