"""HTTP: predictions of saved models, and a page that shows them."""

from streamkernel.service.app import create_app
from streamkernel.service.server import serve
from streamkernel.service.settings import JobsPlace, Limits, Settings

__all__ = ["JobsPlace", "Limits", "Settings", "create_app", "serve"]
