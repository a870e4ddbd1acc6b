"""What attacks are aimed at: systems that answer questions about people with a secret, ours among them."""
