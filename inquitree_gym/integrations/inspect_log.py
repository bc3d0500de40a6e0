"""Our episodes as logs of inspect_ai, for ``inspect view`` (extra ``inspect``)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from statistics import fmean

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

from inquitree_gym.analysis.export import message_row
from inquitree_gym.integrations.inspect import VERSION, chat_messages
from inquitree_gym.integrations.session import SessionScore, session_score
from inquitree_gym.integrations.tasks import InquiryTask
from inquitree_gym.log import Episode, file_stem
from inquitree_gym.scoring.episode import agent_label
from inquitree_gym.trees import Tree

SCORER = "inquiry_scores"


def write_inspect_logs(episodes: Iterable[tuple[Tree, Episode]], folder: Path) -> list[Path]:
    """Write an ``.eval`` file for each agent of concluded episodes into ``folder``, and return the files.

    Raises:
        LogError: an episode was played on another version of its tree.
    """
    by_agent: defaultdict[str, list[tuple[Tree, Episode]]] = defaultdict(list)
    for tree, episode in episodes:
        by_agent[agent_label(episode.header.agent)].append((tree, episode))
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for agent, group in by_agent.items():
        files.append(folder / f"{file_stem(agent)}.eval")
        write_eval_log(_log(agent, group), files[-1])
    return files


def _log(agent: str, episodes: list[tuple[Tree, Episode]]) -> EvalLog:
    times = defaultdict[str, int](int)
    samples, scores = [], []
    for tree, episode in episodes:
        score = session_score(episode, tree)
        assert score is not None
        key = _key(tree, episode)
        times[key] += 1  # a key that comes again, from another run, is another epoch of its sample
        samples.append(_sample(tree, episode, score, key, times[key]))
        scores.append(asdict(score))
    means = {name: fmean(each[name] for each in scores) for name in scores[0]}
    return EvalLog(
        status="success",
        eval=EvalSpec(
            created=min(episode.header.started for _, episode in episodes),
            task="inquitree_gym/inquiry",
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


def _sample(tree: Tree, episode: Episode, score: SessionScore, key: str, epoch: int) -> EvalSample:
    row = message_row(episode, tree)
    messages = chat_messages(row.pop("messages"))
    conclusion = messages[-1].text
    return EvalSample(
        id=key,
        epoch=epoch,
        input=tree.topic,
        target="",
        messages=messages,
        output=ModelOutput.from_content(row["agent"], conclusion),
        scores={SCORER: Score(value=asdict(score), answer=conclusion)},
        metadata=row,
    )


def _key(tree: Tree, episode: Episode) -> str:
    rules = {name: value for name, value in episode.header.rules.items() if name != "threshold"}
    return InquiryTask(tree.id, tree.version, episode.header.seed, rules).key
