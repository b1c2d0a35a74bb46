"""The phone in a box: a real adbd and a real builder prefix where no phone is attached."""
