"""What the pages Ask and Protect are made of: the editor, the answer, tables, the form of a policy, analysts."""
