"""A fitted classifier as one HTML page that answers questions by itself.

The page is a single file without links: text and pictures are written here, what moves is
JavaScript from the folder ``static``, and the network itself lies in the page as data.
"""
