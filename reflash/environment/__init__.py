"""Is this machine ready to generate for a week? Facts are collected, judged and compared with the last audit."""
