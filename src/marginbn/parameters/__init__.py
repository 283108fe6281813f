"""Parameters trained for the class posterior, and the proper network that has this posterior."""
