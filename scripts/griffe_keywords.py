"""Extension of griffe: name the keywords of environments that take ``**keywords: Unpack[...]`` on the API pages.

Griffe's own `unpack_typeddict` leaves out inherited keys and knows no defaults.
"""

from __future__ import annotations

from typing import Any

import griffe

ENVS = ("synthetic.SyntheticEnv", "vector.InquiryVectorEnv", "batch.env.InquiryBatchEnv")


class Keywords(griffe.Extension):
    """Give each constructor the keywords of its `TypedDict`, with the defaults of `InquiryEnv`."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Rewrite the parameters of the package's environments."""
        template = pkg["envs.inquiry.InquiryEnv.__init__"].parameters
        for path in ENVS:
            function = pkg[f"envs.{path}.__init__"]
            *named, rest = function.parameters
            keys = pkg["envs.keywords"][str(rest.annotation.slice)].all_members
            function.parameters = griffe.Parameters(*named, *(each for each in template if each.name in keys))
