"""The databases that compute exact integers, and nothing else."""
