"""A strategy as the server of a Flower app, with local work on the clients; needs the extra `flower`."""

from fl_core.live.flower import client_app, server_app

__all__ = ["client_app", "server_app"]
