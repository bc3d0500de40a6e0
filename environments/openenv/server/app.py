"""Server of the OpenEnv environment ``inquitree``."""

import uvicorn

from inquitree_gym.integrations.openenv import episode_app

app = episode_app()


def main() -> None:
    """Serve on loopback until the process ends; a container names another address."""
    uvicorn.run(app, host="127.0.0.1", port=8000)


if __name__ == "__main__":
    main()
