"""What Spark says is passed on without the secrets that it was given."""

from __future__ import annotations

from platform_assets.settings import Settings, load_settings
from platform_assets.spark.session.reasons import without_secrets


def test_secrets_of_the_configuration_and_of_a_remote_address_are_hidden_and_nothing_else(settings: Settings) -> None:
    given = load_settings(
        state=settings.state,
        spark_conf={"spark.hadoop.fs.s3a.secret.key": "k3y", "spark.ssl.keyPassword": "k3y-longer", "spark.x": "plain"},
        spark_remote="sc://ada:pw@host:15002/;use_ssl=true;token=t0ken;x-key=other",
    )
    text = "k3y k3y-longer plain sc://ada:pw@host:15002/;use_ssl=true;token=t0ken;x-key=other"
    assert without_secrets(text, given) == "*** *** plain sc://***@host:15002/;use_ssl=true;token=***;x-key=***"
    assert not [secret for secret in ("k3y", "t0ken", "other", "ada:pw") if secret in repr(given) + str(given)]
