"""The squeeze, joined: load, exact transform, a recipe's methods, search for its contract, file, report."""
