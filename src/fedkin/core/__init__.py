"""The foundations of all parts and engines: stacked models, random streams, batch plans and clients' private slots."""
