"""What is known of runs: their files read and checked, compared, and their levels and students looked into."""
