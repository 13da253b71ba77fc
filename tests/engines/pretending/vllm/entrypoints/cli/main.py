"""`python -m vllm.entrypoints.cli.main serve MODEL …`."""

import os

from pretend import serve

if __name__ == "__main__":
    serve("vllm", os.environ["VLLM_API_KEY"])
