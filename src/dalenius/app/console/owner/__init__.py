"""What the page Protect is made of: files, the form and its policy, tables, analysts, alarms."""
