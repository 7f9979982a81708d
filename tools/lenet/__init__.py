"""MNIST, and the two small networks on which the squeeze is compared with the papers."""
