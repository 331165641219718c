"""What a spike's users should see, from the target's settings and the kernel's limit alone."""
