"""The attacks that Tenfold was hardened against, run on a real control plane of any source tree."""
