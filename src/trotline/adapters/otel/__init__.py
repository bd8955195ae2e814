"""Spans for OpenTelemetry, sent over HTTP (OTLP)."""
