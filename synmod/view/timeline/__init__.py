"""A trace as one page: a timeline, the tree of the calls, a search, and all that is known of each call.

Its script and looks are files beside this one, put into the page whole; nothing is fetched when it is opened.
"""
