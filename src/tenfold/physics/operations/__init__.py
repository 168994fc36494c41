"""Operations: failures, goodput, data loading, energy, money."""
