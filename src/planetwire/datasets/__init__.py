"""One folder a dataset: what only this one knows. The rooms that work with all of them are handed it by wiring."""
