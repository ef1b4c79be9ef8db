"""The command line. Each module is one group of commands; nothing heavy is imported before a command runs."""
