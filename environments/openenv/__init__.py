"""InquiTree for OpenEnv."""
