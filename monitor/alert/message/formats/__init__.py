"""How a letter looks where it is read, one file for each kind of receiver. Pure."""
