"""One use case per file, named like its command: like `config`, this room composes the others."""
