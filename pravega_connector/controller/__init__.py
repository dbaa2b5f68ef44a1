"""Service of the controller over gRPC: calls, messages and tokens."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pravega_connector.controller.methods import subscriber_config as subscriber_config
    from pravega_connector.controller.service import ControllerClient as ControllerClient
    from pravega_connector.controller.transactions import SOON as SOON
    from pravega_connector.controller.transactions import CommitWatch as CommitWatch
else:
    from pravega_serde.public_names import public_names

    __getattr__, __dir__, __all__ = public_names(
        __name__,
        {
            "methods": "subscriber_config",
            "service": "ControllerClient",
            "transactions": "SOON CommitWatch",
        },
    )
