"""The commands `planetwire sources …`."""
