"""What is measured so that many questions are answered well: strategies over public sizes, no rows and no noise."""
