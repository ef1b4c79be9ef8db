"""Ray: its workers read the texts of a bulk, so that the speed of one machine is no bound; one process stores them."""
