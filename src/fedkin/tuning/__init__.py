"""Good settings for methods, found by validation samples with Optuna."""
