"""DuckDB: the engine of files. Its SQL, its types and its index are here and nowhere else."""
