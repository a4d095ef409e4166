"""A local page that shows a run or a comparison while it is played: what it shows, and the server that hands it out."""
