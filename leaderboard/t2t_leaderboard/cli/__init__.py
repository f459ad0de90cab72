"""The commands of the leaderboard room, one file each."""
