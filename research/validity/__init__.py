"""What trees, matcher, embedders and judges are worth, measured."""
