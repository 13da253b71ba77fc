"""Results to markdown, tables and charts. Pure."""
