"""What is read out of models and factors: arrays in the units of the axes, without colours."""
