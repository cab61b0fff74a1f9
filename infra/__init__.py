"""How it runs: settings, the bus, servers, supervisor, command line, telemetry."""
