"""The benchmark: Trotline beside its peers, on one generated site, in one run. Start with `python -m bench --quick`."""
