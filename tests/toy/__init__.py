"""A kind of environment of one's own: the agent says the words of a list, and each word earns a share.

It is installed by the entry point in ``site``, a folder for ``sys.path`` or ``PYTHONPATH``.
"""
