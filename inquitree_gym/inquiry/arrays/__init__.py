"""The discrete view of thousands of inquiries as flat arrays.

Every inquiry is a row of integers, and the engine's transition function takes all rows one turn further in one call.
Matching a text is slow, but the menu has few texts: each is matched once in every reading context, so that an action is
a lookup.

| module | holds |
| --- | --- |
| `tables` | tables of the trees: engine, readings of the menu, numbers of texts, grades of conclusions |
| `loop` | the loops of a step over all rows: readings, restarts, infos and masks, observations, rewards |
| `compiled` | the engine's function and these loops, compiled by Numba or as plain Python |
| `numba_functions` | the hashes as compiled code, in which integers wrap |
| `batch` | the rows and buffers of all inquiries, and a step, block by block |
| `observers` | observations as rows of features, or as indices |
| `env` | `InquiryBatchEnv`, the Gymnasium interface |

One step, for a block of inquiries at a time: look up readings, advance the rows, restart those that were over, write
infos and masks, number the texts, write observations. Rewards follow for those that ended, and under ``"SameStep"``
their last observations and the next episode.
"""
