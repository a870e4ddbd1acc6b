"""The SELECTs that an engine runs for a plan, one kind per file. Nothing of the analyst's text is in them."""
