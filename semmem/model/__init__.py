"""The words of semmem as types: no input or output, no third-party import."""
