#!/bin/sh
# Runs the server of the federation until Ctrl-C.
cd "$(dirname "$0")/.." && exec fedkin federation serve .
