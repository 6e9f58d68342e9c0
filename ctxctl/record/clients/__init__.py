"""Programs that `ctxctl record` knows: by what it recognises them, and how each is led to the relay.

Most programs read a variable that names the provider's address.  Some spell it in a way of their own, some
read a setting or a flag instead, and one takes a variable for another way to sign in.  `table` has what each
reads, docs/recording.md with which version that was tried; a program's own files are never changed.
"""

from ctxctl.record.clients.recognising import CLIENTS, Client, Found, recognised
from ctxctl.record.clients.setup import Setup, Start
from ctxctl.record.clients.ways import set_up

__all__ = ["CLIENTS", "Client", "Found", "Setup", "Start", "recognised", "set_up"]
