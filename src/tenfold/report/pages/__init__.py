"""HTML reports: self-contained pages for plans, runs, comparisons and growth."""
