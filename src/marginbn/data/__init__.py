"""From a file or a container to a table of codes: the first stage of the road."""
