"""The web server of `trotline web`: pages, JSON API, and what keeps both safe. See docs/decisions/101-web-server.md."""
