"""What people touch: the command line, later the HTTP server and the console."""
