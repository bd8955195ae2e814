"""`python -m trotline.cli` is `trotline`."""

from trotline.cli.main import main

main()
