"""`sglang.launch_server`."""

from pretend import flag, serve

if __name__ == "__main__":
    serve("sglang", flag("--api-key"))
