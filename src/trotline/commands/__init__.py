"""One use case per file, named like its command: the only room beside `config` that composes the others."""
