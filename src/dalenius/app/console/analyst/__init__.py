"""What the page Ask is made of: questions to begin with, the editor, and the answer."""
