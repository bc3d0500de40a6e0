"""The discrete view of thousands of inquiries as NumPy arrays.

Matching a text is slow, but the menu has few texts. So every menu text is matched once in every reading context, and
the rules become a finite-state machine: `compiler.compile_tree` turns a tree into tables, `pool.Tables` joins those of
several trees, and `kernel.Kernel.step` advances all environments with some ten NumPy calls.

A *state* (int64 index) is the phase and the observation shown last. A *transition* (int64) packs an opcode and a target
state. See `encoding.Op`. Counters hold what a state leaves open: visits of subtopics, runs of studies, and turns.

| array | shape | dtype | content |
| --- | --- | --- | --- |
| ``Kernel.state`` | (num_envs,) | int64 | state |
| ``Kernel.turn``, ``Kernel.tree`` | (num_envs,) | int64 | turns taken, index of the tree |
| ``Kernel.counts`` | (num_envs, subtopics + studies + 2) | int32 | visits or runs, negative while locked |
| ``Kernel.seen``, ``Kernel.fooled`` | (words, num_envs) | int64 | node bits: visited or seen, last shown a fake |
| ``Tables.entries`` | (rows × columns,) | int64 | transition table: index of a branch |
| ``Tables.named``, ``Tables.transitions`` | (3 × branches,) | int64 | counter to test, transition to make |
| ``Tables.states`` | (states,) each | int64, bool | row, text, phase, hint level, … of a state |

One step, for all environments:

1. The column is the action, except that a conclusion has one column per text it can stand for (`conclusions`).
2. ``entries[row_starts[state] + column]`` is a branch. The sign of the counter that it names (locked, unvisited,
   visited) selects one of its three transitions.
3. Transitions without a side effect (`Op.GOTO`) are done. The others are resolved by opcode: rejected actions take the
   state's ``on_reject``. Visits are counted and unlock subtopics. Fakes are drawn by the engine's hash of seed, study
   and run, and so are wordings. First hints choose the least visited node. Conclusions are scored.
4. Environments at their turn limit go to ``states.at_limit``.

Observations and infos are lookups by state (`observations`). Episode seeds and the choice of a tree are in `seeds`.
`env.InquiryBatchEnv` is the Gymnasium interface.
"""
