"""Lock files of the servers' jars, and the folders that they name."""

import hashlib

from pravega_connector.local.jars import PRAVEGA_JARS, REGISTRY_JARS, JarSet
from pravega_connector.local.maven import Jar


def test_the_list_that_ships():
    names = [jar.file_name for jar in PRAVEGA_JARS.jars]
    assert len(set(names)) == len(names) == 156
    assert {"pravega-standalone-0.13.0.jar", "pravega-client-0.13.0.jar", "protobuf-java-3.19.6.jar"} <= set(names)
    assert "netty-transport-native-epoll-4.1.63.Final-linux-x86_64.jar" in names
    assert all(Jar.from_line(jar.to_line()) == jar for jar in PRAVEGA_JARS.jars)
    assert PRAVEGA_JARS.size == 107_410_599


def test_the_registry_has_the_versions_that_wrote_the_vectors():
    names = {jar.file_name for jar in REGISTRY_JARS.jars}
    assert len(names) == len(REGISTRY_JARS.jars) == 120
    assert {f"schemaregistry-{part}-0.6.0.jar" for part in ("server", "client", "serializers")} <= names
    assert {"avro-1.11.1.jar", "protobuf-java-3.21.7.jar", "snappy-java-1.1.7.3.jar"} <= names
    assert {f"jackson-{part}-2.12.7.jar" for part in ("annotations", "core", "databind")} <= names


def test_the_place_in_a_repository():
    (jar,) = (jar for jar in PRAVEGA_JARS.jars if jar.name == "netty-transport-native-epoll" and jar.classifier)
    folder = "io/netty/netty-transport-native-epoll/4.1.63.Final"
    assert jar.path == f"{folder}/netty-transport-native-epoll-4.1.63.Final-linux-x86_64.jar"


def test_the_folder_changes_with_every_jar():
    jar = Jar("o", "n", "1", "", "jar", "0" * 64, 10)
    other = Jar("o", "n", "1", "", "jar", "1" * 64, 10)
    assert len({JarSet("set", "1", jars).key for jars in [(jar,), (other,), (jar, jar)]}) == 3


def test_a_jar_is_known_by_its_bytes(tmp_path):
    jar = Jar("o", "n", "1", "", "jar", hashlib.sha256(b"right").hexdigest(), 5)
    path = tmp_path / jar.file_name
    assert not jar.is_at(path)
    path.write_bytes(b"wrong")
    assert not jar.is_at(path)
    path.write_bytes(b"right")
    assert jar.is_at(path)
