"""The dashboards, a module each: what they show and in which words."""
