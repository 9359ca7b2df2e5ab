"""The formats that providers send, read record by record so that a broken one costs itself. Pure."""
