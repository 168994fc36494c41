"""Questions that join deciders or run the loop many times: ceilings, advice, what-if."""
