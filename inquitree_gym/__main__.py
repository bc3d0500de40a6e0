"""``python -m inquitree_gym``: the command line without its script."""

from inquitree_gym.cli import main

if __name__ == "__main__":
    main()
