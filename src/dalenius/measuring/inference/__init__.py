"""What follows from noisy numbers and public facts: least squares, order, whole numbers, known totals."""
