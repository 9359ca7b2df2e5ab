"""Takes job requests and the schedule; gives claimed work: a ledger row, run under a lease, batch by batch."""
