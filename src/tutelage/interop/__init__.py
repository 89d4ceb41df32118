"""Other libraries: their environments in, our students out. Nothing else in the package imports from here."""
