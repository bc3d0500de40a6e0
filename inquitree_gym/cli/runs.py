"""Verbs that play episodes: play, run."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import typer

from inquitree_gym.baselines import HumanAgent
from inquitree_gym.cli.flags import AGENT, SETTINGS, flag_names, given, kind_values, with_kind_flags
from inquitree_gym.cli.output import (
    FAILED,
    INTERRUPTED,
    REPLY_TOKENS,
    BaseUrlOption,
    EnvOption,
    JsonOption,
    MaxCostOption,
    MaxTotalTokensOption,
    PapersOption,
    ReplyTokensOption,
    RunProgress,
    TaskArgument,
    note,
    note_missing_keys,
    note_unsent_efforts,
    out,
    plural,
    print_json,
    print_summary,
    sigterm_as_interrupt,
    split,
)
from inquitree_gym.cli.plan import show_plan
from inquitree_gym.cluster import LOCAL
from inquitree_gym.embeddings.protocol import Device
from inquitree_gym.envs.text import TextEnv
from inquitree_gym.errors import InquiTreeError, LogError, OptionError
from inquitree_gym.kinds import DEFAULT_KIND, Kind, kind
from inquitree_gym.llm import Budget
from inquitree_gym.results.summary import as_plain
from inquitree_gym.rollout import play as play_episode
from inquitree_gym.runner import RunOptions, RunSummary, StopConditions, StudyConfig, make_study, read_study, run_study
from inquitree_gym.runner.run import Executor, play_episodes
from inquitree_gym.runner.services import MAX_CONCURRENCY, Services, asked_models, missing_keys
from inquitree_gym.runs.folder import keep_task
from inquitree_gym.runs.specs import is_own, judge_options
from inquitree_gym.runs.study import ALL, validated
from inquitree_gym.trees.catalogue import is_path

RUN_FLAGS = {
    "study_file", "out_folder", "max_concurrency", "max_cost", "max_total_tokens", "max_minutes", "cache", "device",
    "ray", "dry_run", "as_json", "as_new_version",
}  # fmt: skip
"""Parameters that do not affect the episodes, so that a study file allows them."""
MODEL_FLAGS = {
    "base_url": "base_url",
    "temperature": "temperature",
    "reasoning_effort": "reasoning_effort",
    "reply_tokens": "max_tokens",
    "context_tokens": "context",
}
"""Model settings by parameter."""

PLAYED = Path("runs/played")
"""Folder of the logs of episodes that a person plays on a page."""

PromptsOption = Annotated[str | None, typer.Option(help="default, another set such as paper, or a folder.")]
ModelNamesOption = Annotated[
    str | None, typer.Option(help="litellm's names of models, comma-separated: provider/name.")
]
RewardJudgeOption = Annotated[
    str | None, typer.Option(help="Judge that sets the reward: llm:MODEL or llm-paper:MODEL asks a model.")
]
EffortsOption = Annotated[
    str | None, typer.Option(help="Reasoning efforts, comma-separated; every model plays with each of them.")
]
ContextOption = Annotated[
    int | None, typer.Option("--context", help="Largest request in estimated tokens; the model's window by default.")
]
NewVersionOption = Annotated[
    bool, typer.Option("--as-new-version", help="Play a changed task under a new name beside the old one.")
]
EpisodesOption = Annotated[
    int, typer.Option(min=1, help="Episodes played at the same time, of agents that ask a model.")
]
DeviceOption = Annotated[Device, typer.Option(help="Device of a local embedder; auto takes CUDA if there is one.")]

AgentsOption = Annotated[
    str | None,
    typer.Option(
        help="Agents, comma-separated; by default two of the kind. The message about an unknown one lists them."
    ),
]

app = typer.Typer()


@app.command()
@with_kind_flags(SETTINGS)
def play(
    context: typer.Context,
    task: TaskArgument,
    env: EnvOption = DEFAULT_KIND,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the episode.")] = 0,
    prompts: PromptsOption = None,
    log: Annotated[Path | None, typer.Option(help="Log the episode to this file; a torn log is resumed.")] = None,
    **_flags: Any,
) -> None:
    """Play an episode yourself. End a message with an empty line. Press Ctrl-C to leave."""
    study = _one_episode(env, task, prompts, kind_values(env, SETTINGS, context.params, given(context)))
    played = kind(env)
    loaded = played.tasks.load(study.trees[0])
    made = played.play.maker(study.settings, Services(study.prompts_name))(loaded)
    options = study.settings.options(dict(study.cells[0]), loaded)
    if log is not None and is_path(task):
        _keep(log.parent, played, loaded)
    try:
        episode = play_episode(made, HumanAgent(_Person(made)), seed, file=log, options=options)
    except (KeyboardInterrupt, EOFError):
        out.print("\nLeft before the end." + (f" Run the same command to resume; the log is {log}." if log else ""))
        raise typer.Exit(FAILED) from None
    if episode.footer is not None:
        out.print(f"\n{episode.footer.observation}")
        out.print(f"Your score is {episode.footer.episode_return:.2f} after {plural(len(episode.turns), 'turn')}.")
        out.print(f"inquitree view {log or 'LOG'} shows why{'' if log else '; play with --log LOG to keep it'}.")


def _keep(folder: Path, played: Kind, task: Any) -> None:
    """Copy the file that is played beside its log, which is scored with it. Raise `LogError` if that fails."""
    try:
        keep_task(folder, played, task)
    except OSError as error:
        raise LogError(f"cannot write to '{folder}': {error.strerror}; name a log in another folder") from error


def _one_episode(env: str, task: str, prompts: str | None, settings: Mapping[str, Any]) -> StudyConfig:
    """Return the study of one episode of a person. Raise `OptionError` for more, or for settings that do not fit."""
    study = validated({"env": env, "agents": ["human"], "trees": [task], "prompts": prompts, **settings})
    if len(study.cells) > 1:
        raise OptionError(f"one episode has one value each of {', '.join(study.settings.grid)}; give no list")
    return study


def play_on_page(
    task: str, env: str, settings: Mapping[str, Any], seed: int, log: Path | None, port: int
) -> None:  # fmt: skip
    """Serve a page on which a person plays an episode, until it is ended there or with Ctrl-C."""
    from inquitree_gym.integrations.play_page import PlayServer
    from inquitree_gym.integrations.session import EpisodeSession
    from inquitree_gym.integrations.tasks import OwnTask

    study = _one_episode(env, task, None, settings)
    loaded, cell = kind(env).tasks.load(study.trees[0]), dict(study.cells[0])
    others = study.settings.model_dump(mode="json", exclude=set(study.settings.grid), exclude_unset=True)
    episode = OwnTask(env, loaded.id, loaded.version, seed, cell, others, loaded)
    episode.options  # noqa: B018  (refuses what the task does not have, before there is a page)
    place = {"folder": PLAYED} if log is None else {"file": log}
    agent = HumanAgent(lambda observation, info: "").config

    with PlayServer(lambda: EpisodeSession(episode, agent=agent, **place), f"Play {loaded.id}", port) as server:
        note(f"open {server.address} in your browser; press Ctrl-C to end")
        with suppress(KeyboardInterrupt):
            server.serve_forever(0.1)
        server.close()
        if server.log is not None:
            note(f"the log is {server.log}; read it with inquitree score and inquitree view")


@app.command()
@with_kind_flags(SETTINGS, AGENT)
def run(  # noqa: PLR0913  (one parameter per flag)
    context: typer.Context,
    agent: AgentsOption = None,
    env: EnvOption = DEFAULT_KIND,
    model: ModelNamesOption = None,
    base_url: BaseUrlOption = None,
    temperature: Annotated[str, typer.Option(help="Temperature, or none for the provider's default.")] = "0.0",
    reasoning_effort: EffortsOption = None,
    reply_tokens: ReplyTokensOption = REPLY_TOKENS,
    context_tokens: ContextOption = None,
    papers: PapersOption = ALL,
    tiers: Annotated[str | None, typer.Option(help="Keep tasks of these evidence tiers: A, B, C.")] = None,
    seeds: Annotated[int, typer.Option(help="Episodes per agent, model, task and value of a list.")] = 5,
    first_seed: Annotated[int, typer.Option(help="First of the seeds, which are consecutive.")] = 0,
    judge: RewardJudgeOption = None,
    judge_base_url: Annotated[str | None, typer.Option(help="Server of the judge's model.")] = None,
    prompts: PromptsOption = None,
    study_file: Annotated[Path | None, typer.Option("--study", help="Read the options above from a TOML file.")] = None,
    out_folder: Annotated[Path, typer.Option("--out", help="Folder of the run.")] = Path("runs/latest"),
    as_new_version: NewVersionOption = False,
    max_concurrency: EpisodesOption = MAX_CONCURRENCY,
    max_cost: MaxCostOption = None,
    max_total_tokens: MaxTotalTokensOption = None,
    max_minutes: Annotated[float | None, typer.Option(help="Stop sending requests after these minutes.")] = None,
    cache: Annotated[Path | None, typer.Option(help="Folder of cached replies.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and its estimated cost only.")] = False,
    device: DeviceOption = "cpu",
    ray: Annotated[str | None, typer.Option(help="Play on Ray: local, auto, or the address of a cluster.")] = None,
    as_json: JsonOption = False,
    **_flags: Any,
) -> None:
    """Run agents over tasks, and log every episode. Run again to play only what is missing."""
    study = _study(context)
    if dry_run:
        show_plan(study, out_folder, as_json, as_new_version)
        return
    note_services(study, ray)
    budget = Budget(max_cost, max_total_tokens, max_minutes and max_minutes * 60)
    options = RunOptions(max_concurrency, budget, cache, device=device, as_new_version=as_new_version)
    summary = play_study(study, out_folder, options, budget, ray)
    if as_json:
        failures = [{"episode": each.spec.file_name, "error": each.error} for each in summary.failures]
        print_json({**as_plain(summary), "folder": str(out_folder), "failures": failures, "paid": budget.usage})
    check_complete(summary)


def note_services(study: StudyConfig, ray: str | None = None) -> None:
    """Print the known problems of the models of a study on the error stream."""
    models = asked_models(study)
    note_unsent_efforts(models)
    if ray in (None, LOCAL):  # machines of another cluster have environments of their own
        note_missing_keys(missing_keys(models, {model.label for model in models}))


def check_complete(summary: RunSummary) -> None:
    """Raise `InquiTreeError` if episodes of a run failed or were left."""
    if not summary.is_complete:
        failed = plural(len(summary.failures), "episode")
        first = "correct the faults named above, then " if summary.failures else ""
        raise InquiTreeError(f"{failed} failed and {summary.left} left; {first}run the same command again to resume")


def play_study(
    study: StudyConfig, folder: Path, options: RunOptions, budget: Budget, ray: str | None = None
) -> RunSummary:
    """Play what is missing of a study, with its progress and its summary on the error stream."""
    executor: Executor = play_episodes
    if ray is not None:
        from inquitree_gym.runner.ray import RayExecutor

        executor = RayExecutor(ray)
    bar = RunProgress(sum(1 for _ in study.specs()), budget)
    try:
        with sigterm_as_interrupt(), bar.display():
            summary = run_study(study, folder, options, bar.update, StopConditions(bar.announce_stop), executor)
    except KeyboardInterrupt:
        note(f"interrupted; run the same command again to resume: {folder}")
        raise typer.Exit(INTERRUPTED) from None
    print_summary(summary, budget, folder)
    return summary


def _study(context: typer.Context) -> StudyConfig:
    """Return the study of the command line, or of its study file. Raise `InquiTreeError` for options without effect."""
    flags, set_here = context.params, given(context)
    if flags["study_file"] is not None:
        if beside := set_here - RUN_FLAGS:
            raise InquiTreeError(
                f"--study takes what to play from its file; leave out {flag_names(beside)}, or write it into the file"
            )
        study = read_study(flags["study_file"])
        for name in filter(is_own, study.agents):
            note(f"'{flags['study_file']}' names the agent '{name}', whose code is run")
        return study
    env = flags["env"]
    own = kind_values(env, AGENT, flags, set_here)
    if flags["model"] is None and (idle := set_here & {*MODEL_FLAGS, *own}):
        raise InquiTreeError(f"{flag_names(idle)} without a model does nothing; name one with --model, or leave it out")
    settings = {setting: flags[name] for name, setting in MODEL_FLAGS.items()} | own
    efforts = split(flags["reasoning_effort"] or "") or (None,)
    return make_study(
        env=env,
        agents=kind(env).play.default_agents if flags["agent"] is None else split(flags["agent"]),
        models=[
            {"model": name, **settings, "reasoning_effort": effort}
            for name, effort in product(split(flags["model"] or ""), efforts)
        ],
        trees=split(flags["papers"]),
        tiers=None if flags["tiers"] is None else split(flags["tiers"].upper()),
        judge=_judge(flags),
        **{name: flags[name] for name in ("seeds", "first_seed", "prompts")},
        settings=kind_values(env, SETTINGS, flags, set_here),
    )


def _judge(flags: Mapping[str, Any]) -> str | dict[str, Any] | None:
    """Return the judge as a study takes it. Raise `InquiTreeError` for an unknown name or an address without effect."""
    name: str | None = flags["judge"]
    if (base_url := flags["judge_base_url"]) is None:
        return name
    if name is None:
        raise InquiTreeError("--judge-base-url without a model does nothing; name one with --judge llm:MODEL")
    settings: dict[str, Any] = judge_options(flags["env"]).named(name)
    return settings | {"base_url": base_url}


class _Person:
    """Asks a person at the terminal for each message of an episode."""

    def __init__(self, env: TextEnv[Any, Any, Any, Any]) -> None:
        self._env = env
        self._told = False

    def __call__(self, observation: str, info: Mapping[str, Any]) -> str:
        out.print(f"turn {info['turn'] + 1}\n\n{observation}", highlight=False, soft_wrap=True)
        if not self._told:
            out.print("\nA message may have several lines. An empty line ends it.", highlight=False)
            self._told = True
        limit = self._env.turn_limit
        left = "" if limit is None else f" · {plural(max(limit - info['turn'], 0), 'turn')} left"
        lines: list[str] = []
        while True:
            line = out.input("… " if lines else f"\n{info['state']}{left} > ")
            if not line.strip() and lines:
                return "\n".join(lines)
            if line.strip():
                lines.append(line)
