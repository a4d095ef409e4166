"""The figures of the page, as plain dictionaries for plotly.js. Each module draws the figures of one topic."""
