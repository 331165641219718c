"""Makes what the tests need of images: python -m tests.compose.images."""

from tests.compose.images.stand_ins import provide

if __name__ == "__main__":
    images = provide()
    for name, seconds in images.seconds.items():
        print(f"built {name} in {seconds:.0f} s")
    for name, version in images.stand_ins.items():
        print(f"stand-in {name}: {version}")
