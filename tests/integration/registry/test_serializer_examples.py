"""docs/serialization/schema-registry.md names every setting of a serializer."""

from pathlib import Path

from pravega_serde.registry.settings import WriterSettings

PAGE = (Path(__file__).parents[3] / "docs" / "serialization/schema-registry.md").read_text()


def test_every_setting_is_on_the_page() -> None:
    missing = [
        name for name in WriterSettings.__annotations__ if f"| `{name}`" not in PAGE and f", `{name}`" not in PAGE
    ]
    assert missing == []
    assert len(WriterSettings.__annotations__) == 11
