"""The frontier in Redis or Valkey: all knowledge of Redis is in this folder."""
