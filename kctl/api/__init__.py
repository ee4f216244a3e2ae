"""What programs and notebooks import from `kctl`; everything else in the package is private."""
