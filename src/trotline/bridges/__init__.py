"""Bridges: other programs' crawlers on our frontier."""
