"""Facts as figures: one look for all, plots of lines and of bars, and pictures of levels and episodes."""
