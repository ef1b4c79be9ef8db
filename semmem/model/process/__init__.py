"""This process: its clock, what of the machine it may use, and the calls of libraries that its end waits for."""
