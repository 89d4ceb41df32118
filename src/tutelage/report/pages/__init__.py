"""The report itself: its chapters in HTML, its tables, and the files that lie beside the page."""
