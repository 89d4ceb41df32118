"""A set of runs as one page: `facts` are what is known of runs, `plots` draw them, `pages` tell them in HTML."""
