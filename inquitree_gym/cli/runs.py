"""Verbs that play episodes: play, run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import typer

from inquitree_gym.analysis.aggregate import as_plain
from inquitree_gym.baselines import HumanAgent
from inquitree_gym.baselines.own import is_own
from inquitree_gym.baselines.projecting_llm import Memory, ReplyForm
from inquitree_gym.baselines.registry import agent_names, known_agents
from inquitree_gym.cli.dry_run import note_missing_keys, note_unsent_efforts, show_plan
from inquitree_gym.cli.output import (
    FAILED,
    INTERRUPTED,
    REPLY_TOKENS,
    BaseUrlOption,
    JsonOption,
    MaxCostOption,
    MaxTotalTokensOption,
    PapersOption,
    ReplyTokensOption,
    RunProgress,
    ThresholdOption,
    TreeArgument,
    note,
    out,
    plural,
    print_json,
    print_summary,
    sigterm_as_interrupt,
    split,
    whole_numbers,
)
from inquitree_gym.embeddings import DEFAULT_EMBEDDER
from inquitree_gym.embeddings.protocol import Device
from inquitree_gym.engine import Rules
from inquitree_gym.engine.rules import Preset
from inquitree_gym.envs.inquiry import InquiryEnv
from inquitree_gym.envs.rendering import to_terminal
from inquitree_gym.errors import InquiTreeError, OptionError
from inquitree_gym.judges.registry import LOCAL as LOCAL_JUDGE
from inquitree_gym.llm import Budget
from inquitree_gym.log import TaskKind
from inquitree_gym.readers import LOCAL as LOCAL_READER
from inquitree_gym.readers import model_name
from inquitree_gym.rollout import play as play_episode
from inquitree_gym.runner import RunOptions, RunSummary, StopConditions, StudyConfig, run_study
from inquitree_gym.runner.judging import JudgeSettings, ProjectionJudgeSettings
from inquitree_gym.runner.models import MAX_CONCURRENCY, missing_keys
from inquitree_gym.runner.ray import RayExecutor
from inquitree_gym.runner.ray_cluster import LOCAL
from inquitree_gym.runner.rules import PRESET
from inquitree_gym.runner.run import Executor, play_episodes
from inquitree_gym.runner.study import ALL, make_study, read_study

RUN_FLAGS = {
    "study_file", "out_folder", "max_concurrency", "max_cost", "max_total_tokens", "max_minutes", "cache", "device",
    "ray", "dry_run", "as_json", "as_new_version",
}  # fmt: skip
"""Parameters that do not affect the episodes, so that they go with a study file."""
MODEL_FLAGS = {
    "base_url": "base_url",
    "temperature": "temperature",
    "reasoning_effort": "reasoning_effort",
    "reply_tokens": "max_tokens",
    "context_tokens": "context",
    "belief": "belief",
    "memory": "memory",
    "reply": "reply",
}
"""Model settings by parameter."""

RulesOption = Annotated[
    Preset, typer.Option("--rules", help="Preset of rules: default, or paper for those of the paper.")
]
PromptsOption = Annotated[str | None, typer.Option(help="default, paper, or a folder; by default those of --rules.")]
RuleOption = Annotated[
    list[str] | None, typer.Option("--rule", help="Another rule of the episodes, as NAME=VALUE; may be repeated.")
]
ModelNamesOption = Annotated[
    str | None, typer.Option(help="litellm's names of models, comma-separated: provider/name.")
]
RewardJudgeOption = Annotated[
    str, typer.Option(help="Judge of the reward: local, or llm:MODEL or llm-paper:MODEL to ask a model.")
]
EffortsOption = Annotated[
    str | None, typer.Option(help="Reasoning efforts, comma-separated; every model plays with each of them.")
]
ContextOption = Annotated[
    int | None, typer.Option("--context", help="Largest request in estimated tokens; the model's window by default.")
]
BeliefOption = Annotated[bool, typer.Option("--belief", help="Ask models what they believe of each result.")]
NewVersionOption = Annotated[
    bool, typer.Option("--as-new-version", help="Play a tree that was changed as a further tree of the run.")
]
EpisodesOption = Annotated[
    int, typer.Option(min=1, help="Episodes played at the same time, of agents that ask a model.")
]
DeviceOption = Annotated[Device, typer.Option(help="Device of a local embedder; auto takes CUDA if there is one.")]

AgentsOption = Annotated[
    str | None,
    typer.Option(
        help=f"Agents, comma-separated: {known_agents('inquiry')}; with --env projection: "
        f"{', '.join(agent_names('projection'))}. By default random,oracle or coin,oracle."
    ),
]
EnvOption = Annotated[TaskKind, typer.Option("--env", help="Kind of environment.")]
MemoryOption = Annotated[
    Memory, typer.Option(help="Memory of models that project: none between levels, or one conversation.")
]
ReplyOption = Annotated[ReplyForm, typer.Option(help="Replies of models that project: plain, or THOUGHT and ACTION.")]
_JUDGES: dict[TaskKind, type[JudgeSettings | ProjectionJudgeSettings]] = {
    "inquiry": JudgeSettings, "projection": ProjectionJudgeSettings,
}  # fmt: skip
DEFAULT_AGENTS: dict[TaskKind, str] = {"inquiry": "random,oracle", "projection": "coin,oracle"}

app = typer.Typer()


@app.command()
def play(  # noqa: PLR0913  (one parameter per flag)
    tree: TreeArgument,
    fake_level: Annotated[int, typer.Option(help="Show fake results with probability LEVEL/10.")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the episode.")] = 0,
    max_turns: Annotated[int | None, typer.Option(help="Turn limit; n(2H+3) by default.")] = None,
    rules: RulesOption = "default",
    rule: RuleOption = None,
    prompts: PromptsOption = None,
    log: Annotated[Path | None, typer.Option(help="Log the episode to this file; a torn log is resumed.")] = None,
) -> None:
    """Play an inquiry yourself. End a message with an empty line; press Ctrl-C to leave."""
    given: dict[str, Any] = {"fake_level": fake_level} | ({} if max_turns is None else {"max_turns": max_turns})
    played = Rules.preset(rules).override(given | _rules(rule))
    env = InquiryEnv(tree, prompts=rules if prompts is None else prompts, **played.as_dict())
    try:
        episode = play_episode(env, HumanAgent(_ask), seed, file=log)
    except (KeyboardInterrupt, EOFError):
        out.print("\nLeft before the end." + (f" Run the same command to resume; the log is {log}." if log else ""))
        raise typer.Exit(FAILED) from None
    assert episode.footer is not None
    out.print(f"\n{episode.footer.observation}")
    out.print(f"Your conclusion scores Q/|C| = {episode.footer.episode_return:.2f} after {len(episode.turns)} turns.")


@app.command()
def run(  # noqa: PLR0913  (one parameter per flag)
    context: typer.Context,
    agent: AgentsOption = None,
    env: EnvOption = "inquiry",
    model: ModelNamesOption = None,
    base_url: BaseUrlOption = None,
    temperature: Annotated[str, typer.Option(help="Temperature, or none for the provider's default.")] = "0.0",
    reasoning_effort: EffortsOption = None,
    reply_tokens: ReplyTokensOption = REPLY_TOKENS,
    context_tokens: ContextOption = None,
    belief: BeliefOption = False,
    memory: MemoryOption = "none",
    reply: ReplyOption = "plain",
    papers: PapersOption = ALL,
    tiers: Annotated[str | None, typer.Option(help="Keep trees of these evidence tiers: A, B, C.")] = None,
    fake_level: Annotated[str, typer.Option(help="Fake levels, comma-separated, each 0 to 10.")] = "0",
    seeds: Annotated[int, typer.Option(help="Episodes per agent, model, tree and level.")] = 5,
    first_seed: Annotated[int, typer.Option(help="First of the seeds, which are consecutive.")] = 0,
    max_turns: Annotated[str, typer.Option(help="A number, default for n(2H+3), 3n, or none.")] = "default",
    embedder: Annotated[str, typer.Option(help="Embedder that reads the actions.")] = DEFAULT_EMBEDDER,
    reader: Annotated[str, typer.Option(help="local, or llm:MODEL to ask a model what actions mean.")] = LOCAL_READER,
    reader_base_url: Annotated[str | None, typer.Option(help="Server of the reader's model.")] = None,
    judge: RewardJudgeOption = LOCAL_JUDGE,
    judge_base_url: Annotated[str | None, typer.Option(help="Server of the judge's model.")] = None,
    threshold: ThresholdOption = None,
    rules: RulesOption = "default",
    rule: RuleOption = None,
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
) -> None:
    """Run agents over trees, or projection tasks, and log every episode. Run again to play only what is missing."""
    study = _study(context)
    if dry_run:
        show_plan(study, out_folder, as_json, as_new_version)
        return
    note_services(study, ray)
    budget = Budget(max_cost, max_total_tokens, max_minutes and max_minutes * 60)
    options = RunOptions(max_concurrency, budget, cache, device=device, as_new_version=as_new_version)
    summary = play_study(study, out_folder, options, budget, ray)
    _end(summary, out_folder, budget, as_json)


def _end(summary: RunSummary, folder: Path, budget: Budget, as_json: bool) -> None:
    if as_json:
        print_json(_as_plain(summary, folder, budget))
    check_complete(summary)


def _as_plain(summary: RunSummary, folder: Path, budget: Budget) -> dict[str, Any]:
    failures = [{"episode": each.spec.file_name, "error": each.error} for each in summary.failures]
    return {**as_plain(summary), "folder": str(folder), "failures": failures, "paid": budget.usage}


def note_services(study: StudyConfig, ray: str | None = None) -> None:
    """Print on the error stream what is known to be wrong with the models of a study."""
    note_unsent_efforts(study.services)
    if ray in (None, LOCAL):  # machines of another cluster have environments of their own
        note_missing_keys(missing_keys(study.services, {model.label for model in study.services}))


def check_complete(summary: RunSummary) -> None:
    """Raise `InquiTreeError` if a run left or failed episodes."""
    if not summary.is_complete:
        failed = plural(len(summary.failures), "episode")
        first = "correct the faults named above, then " if summary.failures else ""
        raise InquiTreeError(f"{failed} failed and {summary.left} left; {first}run the same command again to resume")


def play_study(
    study: StudyConfig, folder: Path, options: RunOptions, budget: Budget, ray: str | None = None
) -> RunSummary:
    """Play what is missing of a study, with its progress and its summary on the error stream."""
    executor: Executor = play_episodes if ray is None else RayExecutor(ray)
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
    """Return the study of the command line, or of its study file.

    Raises:
        InquiTreeError: an option would be ignored.
    """
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
    if flags["model"] is None and (idle := set_here & MODEL_FLAGS.keys()):
        raise InquiTreeError(f"{flag_names(idle)} without a model does nothing; name one with --model, or leave it out")
    settings = {setting: flags[name] for name, setting in MODEL_FLAGS.items()}
    efforts = split(flags["reasoning_effort"] or "") or (None,)
    return make_study(
        env=flags["env"],
        agents=split(DEFAULT_AGENTS[flags["env"]] if flags["agent"] is None else flags["agent"]),
        models=[
            {"model": name, **settings, "reasoning_effort": effort}
            for name, effort in product(split(flags["model"] or ""), efforts)
        ],
        trees=split(flags["papers"]),
        tiers=None if flags["tiers"] is None else split(flags["tiers"].upper()),
        fake_levels=whole_numbers("--fake-level", flags["fake_level"]),
        rules={PRESET: flags["rules"]} | _rules(flags["rule"]),
        reader=_asked("reader", flags, lambda name: {"model": model_name(name)}),
        judge=_asked("judge", flags, _JUDGES[flags["env"]].named),
        **{name: flags[name] for name in ("seeds", "first_seed", "max_turns", "embedder", "threshold", "prompts")},
    )


def _rules(given: Sequence[str] | None) -> dict[str, Any]:
    """Return rules from ``NAME=VALUE``; true, false and numbers are read as such.

    Raises:
        OptionError: one of them has another form.
    """
    rules: dict[str, Any] = {}
    for each in given or ():
        name, sign, value = each.partition("=")
        if not (name and sign):
            raise OptionError(f"--rule takes NAME=VALUE, such as bare_decisions=false, not '{each}'")
        try:
            rules[name] = json.loads(value)
        except json.JSONDecodeError:
            rules[name] = value
    return rules


def _asked(role: str, flags: Mapping[str, Any], settings_of: Callable[[str], dict[str, Any]]) -> str | dict[str, Any]:
    """Return the reader or judge as a study takes it.

    Raises:
        OptionError: the name is unknown.
        InquiTreeError: the address would be ignored.
    """
    name, base_url = flags[role], flags[f"{role}_base_url"]
    if base_url is None:
        return str(name)
    if name == LOCAL_READER:
        raise InquiTreeError(f"--{role}-base-url without a model does nothing; name one with --{role} llm:MODEL")
    return settings_of(name) | {"base_url": base_url}


def _ask(observation: str, info: Mapping[str, Any]) -> str:
    to_terminal(f"turn {info['turn'] + 1} · {info['state']}\n\n{observation}")
    lines: list[str] = []
    while True:
        line = out.input("> " if not lines else "… ")
        if not line.strip() and lines:
            return "\n".join(lines)
        if line.strip():
            lines.append(line)


def given(context: typer.Context) -> set[str]:
    """Return the parameters set on the command line."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}


def flag_names(parameters: Iterable[str]) -> str:
    """Return parameters as their flags."""
    names = {"context_tokens": "context"}
    return ", ".join("--" + names.get(name, name).replace("_", "-") for name in sorted(parameters))
