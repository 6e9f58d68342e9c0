"""Programs that `ctxctl record` knows: how it recognises them, and how it redirects each to the relay.

Most programs read a variable that names the provider's address.  Some spell it in a way of their own, some
read a setting or a flag instead, and one takes the variable for another way to sign in.  `known_programs` has
what each reads, docs/recording.md the version that was tried; a program's own files are never changed.
"""

from ctxctl.record.clients.known_programs import CLIENTS, Client, RecognisedProgram, recognised
from ctxctl.record.clients.redirects import set_up
from ctxctl.record.clients.setup import Setup, Start

__all__ = ["CLIENTS", "Client", "RecognisedProgram", "Setup", "Start", "recognised", "set_up"]
