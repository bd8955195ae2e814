"""Spiders of different kinds, written as for plain Scrapy, and what runs them with and without the bridge."""
