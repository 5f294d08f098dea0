"""Real clients in processes of their own. See README.md."""
