"""The stores of web processes: one backend a file, each behind its port."""
