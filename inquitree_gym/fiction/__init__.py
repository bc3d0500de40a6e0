"""The material that all fiction draws from."""
