"""Images, sound and files as data."""

import pydantic
import pytest

from synmod.data import Audio, DataModel, File, Image
from synmod.errors import DataError


def test_from_path(tmp_path):
    """A file is read at once, and its path is no part of the data."""
    path = tmp_path / "cat.PNG"
    path.write_bytes(b"png")
    image = Image.from_path(path)
    assert image.get_json() == {"media_type": "image/png", "data": "cG5n", "url": None}
    with pytest.raises(OSError):
        Image.from_path(tmp_path / "none.png")
    odd = tmp_path / "noname"
    odd.write_bytes(b"x")
    with pytest.raises(DataError, match="media_type"):
        Image.from_path(odd)
    assert File.from_path(odd).media_type == "application/octet-stream"
    assert Image.from_path(str(odd), "image/gif").media_type == "image/gif"


def test_from_url():
    """http and https stay addresses, data is taken apart, others are refused."""
    assert Image.from_url("https://x/y.png").get_json() == {"media_type": None, "data": None, "url": "https://x/y.png"}
    assert Image.from_url("data:image/png;base64,cG5n").get_json() == {
        "media_type": "image/png",
        "data": "cG5n",
        "url": None,
    }
    assert File.from_url("data:text/plain,a%20b").data == "YSBi"
    for url in ("ftp://x", "/etc/passwd", "file:///etc/passwd", "data:image/png;base64"):
        with pytest.raises(DataError):
            Image.from_url(url)
    with pytest.raises(DataError, match="base64"):
        Image.from_url("data:image/png;base64,???")


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("data", {"media_type": "image/png"}),
        ("data", {"media_type": "image/png", "data": "cG5n", "url": "https://x"}),
        ("data", {"media_type": "image/png", "data": "not base64!"}),
        ("media_type", {"data": "cG5n"}),
        ("media_type", {"data": "cG5n", "media_type": "audio/wav"}),
        ("media_type", {"data": "cG5n", "media_type": "image"}),
        ("url", {"url": "/etc/passwd"}),
    ],
)
def test_violations(field, fields):
    """They are pydantic's errors, at the field."""
    with pytest.raises(pydantic.ValidationError) as error:
        Image(**fields)
    assert error.value.errors()[0]["loc"] == (field,)


def test_as_fields():
    """They may be fields of any data model."""

    class Post(DataModel):
        picture: Image
        sound: Audio | None = None

    post = Post(picture=Image.from_bytes(b"x", "image/png"))
    assert post.to_json_data_model().to() == post
