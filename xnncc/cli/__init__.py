"""The command line: one file a command; ``main.py`` assembles, ``messages.py`` ends every run."""
