"""What every long-running part needs: the clock, a loop, pauses, ends, and the points at which crash tests stop it."""
