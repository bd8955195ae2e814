"""The metrics endpoint: figures of workers and jobs in the text format of Prometheus."""
