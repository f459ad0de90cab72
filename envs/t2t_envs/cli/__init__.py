"""The commands of this room, one file each."""
