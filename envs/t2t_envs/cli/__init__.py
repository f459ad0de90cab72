"""The commands of the environments, one file each."""
