"""What each site should do: join or stay alone, with which method and with whom; and whose labels look wrong."""
