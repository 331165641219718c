"""Plans: experiments as data, from the YAML file to the model that a run takes."""
