"""Extension of griffe: name the keywords of environments that take ``**keywords: Unpack[...]`` on the API pages.

Griffe's own `unpack_typeddict` leaves out inherited keys and knows no defaults.
"""

from __future__ import annotations

from typing import Any

import griffe

ENVS = ("vector.SyntheticEnv", "vector.InquiryVectorEnv", "arrays.env.InquiryBatchEnv")


class Keywords(griffe.Extension):
    """Give each constructor the keywords of its `TypedDict`, with the defaults of `InquiryEnv`."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Rewrite the parameters of the package's environments."""
        keyword = griffe.ParameterKind.keyword_only
        rules = [
            griffe.Parameter(name, annotation=rule.annotation, kind=keyword, default=rule.value)
            for name, rule in pkg["inquiry.engine.rules.Rules"].attributes.items()
        ]
        env = pkg["inquiry.env.InquiryEnv.__init__"]
        env.parameters = griffe.Parameters(*list(env.parameters)[:-1], *rules)
        template = env.parameters
        for path in ENVS:
            function = pkg[f"inquiry.{path}.__init__"]
            *named, rest = function.parameters
            keys = pkg["inquiry.keywords"][str(rest.annotation.slice)].all_members
            function.parameters = griffe.Parameters(*named, *(each for each in template if each.name in keys))
