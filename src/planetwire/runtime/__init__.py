"""What every long-running part needs: the clock, pauses, ends, and the points at which crash tests stop it."""
