"""What PyInstaller starts: `kubectl hyperjob`, without the embedded control plane."""

from hyperjob.cli import main

if __name__ == "__main__":
    main()
