"""From a question in SQL to a plan, and from a release to what was asked: language, preview, post-processing."""
