"""Text and JSON from outside made fit to show or to keep. Pure."""
