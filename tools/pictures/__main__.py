"""``python -m tools.pictures``: see the package. With ``record``, also records the numbers of the lag."""

import sys

from tools.pictures import FOLDER, PICTURES, lag

if "record" in sys.argv:
    lag.record()
FOLDER.mkdir(exist_ok=True)
for name, picture in PICTURES.items():
    file = FOLDER / name
    drawn = picture()
    if not file.exists() or file.read_text() != drawn:
        file.write_text(drawn)
        print(f"written: docs/pictures/{name}")
