"""What the pages Ask and Protect are made of: the editor, sliders, answers, tables, the form of a policy, analysts."""
