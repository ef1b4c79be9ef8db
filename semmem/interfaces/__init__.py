"""The doors: strangers to each other, all in front of the same facade; `wire` is what they share."""
