"""One file for each command. Its function has the name of the file, its docstring is the help, ``EXAMPLES`` follow."""
