"""Our episodes as logs of inspect_ai, for ``inspect view`` (extra ``inspect``)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from typing import Any

from inquitree_gym.errors import require

try:
    from inspect_ai.log import (
        EvalConfig,
        EvalDataset,
        EvalLog,
        EvalMetric,
        EvalResults,
        EvalSample,
        EvalScore,
        EvalSpec,
        write_eval_log,
    )
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import Score
except ModuleNotFoundError:
    require("inspect_ai", "inspect")
    raise

from inquitree_gym.integrations.inspect import VERSION, chat_messages
from inquitree_gym.integrations.messages import message_row
from inquitree_gym.kinds import kind
from inquitree_gym.log import Episode, file_stem
from inquitree_gym.results.logs import agent_label
from inquitree_gym.results.score import score_episode

SCORER = "episode_scores"


def write_inspect_logs(episodes: Iterable[tuple[Any, Episode[Any]]], folder: Path) -> list[Path]:
    """Write an ``.eval`` file for each kind and agent of concluded episodes into ``folder``, and return the files.

    Raises:
        LogError: an episode was played on another version of its task.
    """
    by_agent: defaultdict[tuple[str, str], list[tuple[Any, Episode[Any]]]] = defaultdict(list)
    for task, episode in episodes:
        by_agent[episode.header.task.kind, agent_label(episode.header.agent)].append((task, episode))
    folder.mkdir(parents=True, exist_ok=True)
    several = len({name for name, _ in by_agent}) > 1
    files = []
    for (name, agent), group in by_agent.items():
        files.append(folder / f"{name + '-' if several else ''}{file_stem(agent)}.eval")
        write_eval_log(_log(agent, group), files[-1])
    return files


def _log(agent: str, episodes: list[tuple[Any, Episode[Any]]]) -> EvalLog:
    times = defaultdict[str, int](int)
    samples, scores = [], []
    for task, episode in episodes:
        score = score_episode(episode, task)
        key = _key(episode)
        times[key] += 1  # a key that comes again, from another run, is another epoch of its sample
        values = {name: value for name, value in score.values.items() if value is not None}
        scores.append({"reward": episode.footer.episode_return if episode.footer else 0.0, **values})
        samples.append(_sample(task, episode, scores[-1], key, times[key]))
    names = list(dict.fromkeys(name for each in scores for name in each))
    means = {name: fmean(each[name] for each in scores if name in each) for name in names}
    return EvalLog(
        status="success",
        eval=EvalSpec(
            created=min(episode.header.started for _, episode in episodes),
            task="inquitree_gym/research",
            task_version=VERSION,
            dataset=EvalDataset(name="inquitree", samples=len(times), sample_ids=list(times)),
            model=agent,
            config=EvalConfig(),
        ),
        results=EvalResults(
            total_samples=len(samples),
            completed_samples=len(samples),
            scores=[
                EvalScore(name=name, scorer=SCORER, metrics={"mean": EvalMetric(name="mean", value=value)})
                for name, value in means.items()
            ],
        ),
        samples=samples,
    )


def _sample(task: Any, episode: Episode[Any], scores: dict[str, float], key: str, epoch: int) -> EvalSample:
    row = message_row(episode)
    messages = chat_messages(row.pop("messages"))
    conclusion = messages[-1].text
    return EvalSample(
        id=key,
        epoch=epoch,
        input=getattr(task, "topic", task.id),
        target="",
        messages=messages,
        output=ModelOutput.from_content(row["agent"], conclusion),
        scores={SCORER: Score(value=dict(scores), answer=conclusion)},
        metadata=row,
    )


def _key(episode: Episode[Any]) -> str:
    """Return the name of a sample: task, cell, seed, and the rules other than the default's."""
    header, settings = episode.header, kind(episode.header.task.kind).settings
    defaults = {name: value for name, value in settings().all_rules().items() if value is not None}
    cell = [f"{name}={header.rules[name]}" for name in settings.grid if name in header.rules]
    others = [
        f"{name}={value}"
        for name, value in sorted(header.rules.items())
        if name not in settings.grid and value != defaults.get(name, value)
    ]
    return "/".join([f"{header.task.id}@{header.task.version}", *cell, f"s{header.seed}", *others])
