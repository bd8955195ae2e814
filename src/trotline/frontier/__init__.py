"""The gate that every new task passes. (Backends of the frontier itself are adapters.)"""
