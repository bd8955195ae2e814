"""Delivers alerts: webhook (Alertmanager's JSON), Slack-style JSON, mail.

Receivers are the operator's own configuration, so private and loopback addresses are allowed. Redirects are not
followed, certificates are verified, and proxies of the environment are not used.
"""
