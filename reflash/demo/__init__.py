"""The set that `reflash demo` regenerates: prompts written for this project, with placeholder answers to throw away."""
