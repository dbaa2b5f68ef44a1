"""Trust stores that Java's keytool has written."""

import ssl
import subprocess
from pathlib import Path

import pytest
import trustme

from pravega_connector.local.jvm import find_java
from pravega_serde.errors import SerdeError
from pravega_serde.trust_store import trusted_certificates

PASSWORD = "change it"


@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_a_trust_store_of_keytool(tmp_path: Path, kind: str) -> None:
    pem = trustme.CA().cert_pem.bytes().decode()
    (tmp_path / "ca.pem").write_text(pem)
    store = tmp_path / "trusted"
    keytool = find_java().path.with_name("keytool")
    given = ["-storetype", kind, "-keystore", str(store), "-storepass", PASSWORD, "-file", str(tmp_path / "ca.pem")]
    subprocess.run(
        [str(keytool), "-importcert", "-noprompt", "-alias", "authority", *given],
        check=True,
        timeout=60,
        capture_output=True,
    )
    found = trusted_certificates(str(store), PASSWORD)
    assert ssl.PEM_cert_to_DER_cert(found) == ssl.PEM_cert_to_DER_cert(pem)
    with pytest.raises(SerdeError, match="wrong"):
        trusted_certificates(str(store), "another")
