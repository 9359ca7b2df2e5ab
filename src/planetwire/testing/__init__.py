"""The contract of a dataset as tests, for authors of plug-ins and for what is shipped; see docs/plugins.md.

`DatasetContract` is a class of pytest tests to inherit from (the extra `planetwire[testing]`), `check_feed` a function
with the part of it that concerns one feed. No module of the program imports this package.
"""

from planetwire.testing.contract import DatasetContract, ExamplesContract
from planetwire.testing.examples import bodies_in
from planetwire.testing.feeds import check_feed

__all__ = ["DatasetContract", "ExamplesContract", "bodies_in", "check_feed"]
