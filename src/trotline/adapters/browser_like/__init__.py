"""The browser-like client: TLS, HTTP/2 and headers as a browser sends them, by the package wreq.

It opens no connection of its own: every one goes through `relay.py`, which has the guard, the DNS answers and the
proxies of `adapters/http`.
"""
