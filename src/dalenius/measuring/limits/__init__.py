"""What one unit may add at most: limits that are found privately, at `protect` or by a question itself."""
