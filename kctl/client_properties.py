"""Kafka's client properties, as `--command-config` of its tools reads them, as settings of kctl.

Every key that kctl follows is in READ. A key that concerns security and cannot be followed is refused (REFUSED) or
named; other keys without an effect are named in one line.

Source: clients/src/main/java/org/apache/kafka/common/config/{SslConfigs,SaslConfigs}.java,
clients/src/main/java/org/apache/kafka/clients/CommonClientConfigs.java @ 4.1.0; KIP-86, KIP-651 (PEM), KIP-768 (OAuth),
KIP-1139 (client credentials as properties)
"""

from collections.abc import Callable, Mapping
from typing import Any

from formats.errors import MalformedLine
from formats.jaas import LoginModule, parse_jaas
from formats.log_dir.meta_properties import parse_properties
from kctl.errors import BadValue, KctlError, file_error
from kctl.files import read_whole
from kctl.tls.files import is_inline

PROTOCOLS = {
    "PLAINTEXT": (False, False),
    "SSL": (True, False),
    "SASL_PLAINTEXT": (False, True),
    "SASL_SSL": (True, True),
}
# Properties that are settings of kctl as they are.
READ = {
    "bootstrap.servers": "bootstrap_server",
    "client.id": "client_id",
    "ssl.truststore.location": "tls_ca",
    "ssl.truststore.certificates": "tls_ca",
    "ssl.truststore.password": "tls_ca_password",
    "ssl.keystore.location": "tls_certificate",
    "ssl.keystore.certificate.chain": "tls_certificate",
    "ssl.keystore.password": "tls_certificate_password",
    "ssl.keystore.key": "tls_key",
    "ssl.key.password": "tls_key_password",
    "sasl.kerberos.service.name": "sasl_kerberos_service",
    "sasl.oauthbearer.token.endpoint.url": "sasl_oauth_token_url",
    "sasl.oauthbearer.client.credentials.client.id": "sasl_oauth_client_id",
    "sasl.oauthbearer.client.credentials.client.secret": "sasl_oauth_client_secret",
    "sasl.oauthbearer.scope": "sasl_oauth_scope",
}
# Those that hold PEM itself, as Kafka reads them.
PEM = ("ssl.truststore.certificates", "ssl.keystore.certificate.chain", "ssl.keystore.key")
# What the file holds decides, not the type that is named; connection times are kctl's own.
UNDERSTOOD = frozenset(
    {
        "security.protocol",
        "request.timeout.ms",
        "sasl.mechanism",
        "sasl.jaas.config",
        "sasl.login.callback.handler.class",
        "sasl.client.callback.handler.class",
        "ssl.endpoint.identification.algorithm",
        "ssl.truststore.type",
        "ssl.keystore.type",
        "sasl.oauthbearer.jwt.retriever.class",
    }
)
OAUTH = "org.apache.kafka.common.security.oauthbearer."
LOGIN_HANDLERS = frozenset(
    {
        OAUTH + "OAuthBearerLoginCallbackHandler",
        OAUTH + "secured.OAuthBearerLoginCallbackHandler",  # its name before 3.4
        "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler",
    }
)
RETRIEVERS = frozenset(
    OAUTH + name for name in ("DefaultJwtRetriever", "ClientCredentialsJwtRetriever", "FileJwtRetriever")
)
CLIENT_HANDLERS = frozenset({"software.amazon.msk.auth.iam.IAMClientCallbackHandler"})
# Where Java gets its ticket from; kctl uses the one that kinit got.
TICKET_OPTIONS = frozenset(
    [
        "useKeyTab",
        "keyTab",
        "principal",
        "useTicketCache",
        "storeKey",
        "renewTicket",
        "doNotPrompt",
        "debug",
        "refreshKrb5Config",
    ]
)
SECURITY = ("ssl.", "sasl.", "security.", "config.providers")
LARGEST_NUMBER = 2**31 - 1


def read_client_properties(path: str, note: Callable[[str], None]) -> dict[str, Any]:
    """The settings in a client's properties file, by their names in a context. Raises KctlError."""
    try:
        text = read_whole(path, follow=True).decode("latin-1")
    except OSError as error:
        raise file_error(f"client properties {path}", error, KctlError) from error
    try:
        properties = {key: value.strip() for key, value in parse_properties(text).items()}
    except MalformedLine as error:
        raise BadValue(f"client properties {path}: {error}", "correct the file at that line") from None
    try:
        return settings_of(properties, lambda sentence: note(f"{path}: {sentence}"))
    except BadValue as error:
        raise BadValue(f"{path}: {error.message}", error.hint) from None


def settings_of(properties: Mapping[str, str], note: Callable[[str], None]) -> dict[str, Any]:
    """The settings that client properties mean, by their names in a context. Raises BadValue."""
    for key, value in properties.items():
        if value.startswith("${") and value.endswith("}"):
            raise BadValue(
                f"{key} is read by a config provider, which kctl does not have", "write the value itself"
            )
    for key in PEM:
        if properties.get(key) and not is_inline(properties[key]):
            raise BadValue(
                f"{key} is not PEM", "it begins with -----BEGIN; a file is named by ssl.keystore.location"
            )
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise BadValue("security.protocol is not one of Kafka's", f"there are {', '.join(PROTOCOLS)}")
    has_tls, has_sasl = PROTOCOLS[protocol]
    settings: dict[str, Any] = {
        READ[key]: value for key, value in properties.items() if key in READ and value
    }
    if not has_tls:
        _leave_out(settings, properties, "tls_", "ssl.", protocol, note)
    else:
        settings["tls"] = True
        _read_host_check(settings, properties, note)
        if "tls_key" not in settings and "ssl.key.password" not in properties:
            settings.pop("tls_key_password", None)
    if not has_sasl:
        _leave_out(settings, properties, "sasl_", "sasl.", protocol, note)
    else:
        settings |= _login(settings, properties, note)
    if milliseconds := properties.get("request.timeout.ms"):
        if not milliseconds.isdecimal() or not 0 < int(milliseconds[:11]) <= LARGEST_NUMBER:
            raise BadValue("request.timeout.ms is not a number of milliseconds", "write 30000 for 30 s")
        settings["answer_timeout"] = f"{int(milliseconds) / 1000}s"
    unknown = sorted(properties.keys() - READ.keys() - UNDERSTOOD)
    secure = [key for key in unknown if key.startswith(SECURITY)]
    unused = ("ssl.",) * (not has_tls) + ("sasl.",) * (not has_sasl)
    if unfollowed := [key for key in secure if not key.startswith(unused)]:
        note(f"kctl does not follow {', '.join(unfollowed)}")
    if other := [key for key in unknown if key not in secure]:
        note(f"without effect in kctl: {', '.join(other)}")
    return settings


def _leave_out(
    settings: dict[str, Any],
    properties: Mapping[str, str],
    prefix: str,
    group: str,
    protocol: str,
    note: Callable[[str], None],
) -> None:
    """Drop settings that the protocol does not use, as Kafka's clients do, and say so."""
    for key in [key for key in settings if key.startswith(prefix)]:
        del settings[key]
    if unused := sorted(key for key in properties if key.startswith(group)):
        note(f"without effect with security.protocol={protocol}: {', '.join(unused)}")


def _read_host_check(
    settings: dict[str, Any], properties: Mapping[str, str], note: Callable[[str], None]
) -> None:
    algorithm = properties.get("ssl.endpoint.identification.algorithm", "https")
    if algorithm.lower() not in ("", "https"):
        raise BadValue("ssl.endpoint.identification.algorithm is neither https nor empty", "write https")
    if not algorithm:
        settings["tls_check_hostname"] = False


def _login(
    settings: Mapping[str, Any], properties: Mapping[str, str], note: Callable[[str], None]
) -> dict[str, Any]:
    """The settings of a login by SASL."""
    mechanism = properties.get("sasl.mechanism", "GSSAPI").upper()
    module = LoginModule("", {})
    if text := properties.get("sasl.jaas.config"):
        try:
            module = parse_jaas(text)
        except MalformedLine as error:
            raise BadValue(
                f"sasl.jaas.config: {error.what}", 'write CLASS required username="..." password="...";'
            ) from None
    handler = properties.get("sasl.login.callback.handler.class") or None
    _refuse_class("sasl.login.callback.handler.class", handler, LOGIN_HANDLERS)
    _refuse_class(
        "sasl.client.callback.handler.class",
        properties.get("sasl.client.callback.handler.class"),
        CLIENT_HANDLERS,
    )
    _refuse_class(
        "sasl.oauthbearer.jwt.retriever.class",
        properties.get("sasl.oauthbearer.jwt.retriever.class"),
        RETRIEVERS,
    )
    options = module.options
    if mechanism == "AWS_MSK_IAM" or (handler or "").startswith("software.amazon."):
        known = {"awsProfileName": "sasl_aws_profile", "awsRoleArn": "sasl_aws_role"}
        return _filled("AWS_MSK_IAM", options, known, note)
    if mechanism == "OAUTHBEARER":
        return _oauth(settings, module, note)
    if mechanism == "GSSAPI":
        known = {"serviceName": "sasl_kerberos_service"}
        if "keyTab" in options:
            user = options.get("principal", "PRINCIPAL")
            note(f"kctl takes the ticket that kinit got: kinit -kt {options['keyTab']} {user}")
        options = {key: value for key, value in options.items() if key not in TICKET_OPTIONS}
        return _filled(mechanism, options, known, note)
    return _filled(mechanism, options, {"username": "sasl_username", "password": "sasl_password"}, note)


def _filled(
    mechanism: str, options: Mapping[str, str], known: Mapping[str, str], note: Callable[[str], None]
) -> dict[str, Any]:
    if unknown := sorted(options.keys() - known.keys()):
        note(f"kctl does not follow these options of sasl.jaas.config: {', '.join(unknown)}")
    return {"sasl_mechanism": mechanism} | {
        known[key]: value for key, value in options.items() if key in known
    }


def _oauth(settings: Mapping[str, Any], module: LoginModule, note: Callable[[str], None]) -> dict[str, Any]:
    """A login with a token: from a file, or from an endpoint with client credentials (KIP-768)."""
    extensions = {
        key.removeprefix("extension_"): value
        for key, value in module.options.items()
        if key.startswith("extension_")
    }
    options = {key: value for key, value in module.options.items() if not key.startswith("extension_")}
    if any(key.startswith("unsecuredLogin") for key in options):
        raise BadValue(
            "sasl.jaas.config: kctl makes no unsecured tokens",
            "write the token into a file, and sasl.oauthbearer.token.endpoint.url=file:///PATH",
        )
    known = {
        "clientId": "sasl_oauth_client_id",
        "clientSecret": "sasl_oauth_client_secret",
        "scope": "sasl_oauth_scope",
    }
    filled = _filled("OAUTHBEARER", options, known, note)
    if extensions:
        filled["sasl_oauth_extensions"] = ",".join(f"{key}={value}" for key, value in extensions.items())
    url = settings.get("sasl_oauth_token_url", "")
    if url.lower().startswith("file:"):
        from urllib.parse import unquote, urlsplit

        filled["sasl_token_file"] = unquote(urlsplit(url).path)
        filled["sasl_oauth_token_url"] = None
    return filled


def _refuse_class(key: str, name: str | None, known: frozenset[str]) -> None:
    if name and name not in known:
        raise BadValue(
            f"{key}: {name} is a class that kctl does not have",
            "it follows Kafka's OAuth and MSK's IAM; otherwise let a program write the token: sasl_token_file",
        )
