"""The path of a change examined stage by stage, for the doctor and the health routes."""
