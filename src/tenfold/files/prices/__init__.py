"""Cloud price catalogues turned into price facts. Add a price source here."""
