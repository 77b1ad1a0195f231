"""Translations between what older clients say and the one model: bodies in, shapes out, no decisions."""
