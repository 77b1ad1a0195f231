"""What every request passes before a route is asked, from the outside in."""
