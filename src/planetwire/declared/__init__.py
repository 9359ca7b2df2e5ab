"""Sources declared as data: a text in YAML or JSON becomes a dataset like one of ours. Nothing in it is run."""
