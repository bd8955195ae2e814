"""The Gate, the one door for new tasks. (Backends of the frontier itself are adapters.)"""
