"""The graph leg on other edges than those of the texts: dealt at random, or to the nearest vectors."""
