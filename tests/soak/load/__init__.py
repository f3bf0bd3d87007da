"""A mixed load by many processes, for as long as there is time: nothing is lost, and nothing grows or slows down."""
