"""SciExplore (arXiv:2607.20926): tasks in which an agent navigates, identifies, grounds and tabulates."""
