"""Look into APK, AAB and AAR files: what was built, for whom, how large, signed by whom."""
