"""Large answers decoded for one purpose: what is the same in many of their items once, what is not needed not at all."""
