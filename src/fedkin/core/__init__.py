"""What the four verbs stand on: stacked models, random streams, batch plans, private slots."""
