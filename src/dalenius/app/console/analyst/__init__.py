"""What the page Ask is made of: the editor, questions to begin with, and the answer."""
