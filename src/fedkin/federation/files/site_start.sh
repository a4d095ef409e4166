#!/bin/sh
# Takes part in the federation until Ctrl-C.
cd "$(dirname "$0")" && exec fedkin federation site .
