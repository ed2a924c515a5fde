"""An HTTP API for models, corpora and trained tasks, by names that clients know already; and the page on top of it."""

from typing import TYPE_CHECKING

from elmokit.lazy import attach

if TYPE_CHECKING:
    from elmokit.serve.app import make_app
    from elmokit.serve.server import serve
    from elmokit.serve.service import Service, open_service
    from elmokit.serve.settings import Limits, ServeSettings

__all__ = ["Limits", "ServeSettings", "Service", "make_app", "open_service", "serve"]

_HOMES = {"make_app": "app", "serve": "server", "Service": "service", "open_service": "service"}
_HOMES |= {"Limits": "settings", "ServeSettings": "settings"}
__getattr__, __dir__ = attach(__name__, {name: f"elmokit.serve.{module}" for name, module in _HOMES.items()})
