"""What happens by itself: small actors between the store and the targets, one file each."""
