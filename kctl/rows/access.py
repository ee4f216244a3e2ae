"""Rows about access: rules, decisions, forecasts, users, quotas, delegation tokens."""

from kctl.rows import RowType

RESOURCE_TYPE = "topic|group|cluster|transactional_id|delegation_token|user"

ACL = RowType("""
    acl: A rule: who may (or may not) do what with which resources, from where.
    resource_type  string  topic, group, cluster, transactional_id, delegation_token, user
    resource_name  string  `*` with a literal pattern: every resource of the type
    pattern_type   string  literal, prefixed
    principal      string  TYPE:NAME; `User:*` is everybody
    host           string  an address; `*` is every one
    operation      string  Kafka's name in lower case
    permission     string  allow, deny
""")

DECISION = RowType(f"""
    decision: What a broker's authorizer decides.
    principal      string
    host           string    `*`: any host that no rule names
    operation      string
    resource       string    `topic orders`
    resource_type  {RESOURCE_TYPE}
    resource_name  string
    allowed        boolean?  null where what decides is not known
    by             string    the rule; super user; allow everyone; no authorizer; nothing
    acl            object?   the rule that decides, with the keys of an acl row
    why            string?   settings of brokers that decide and are not known
""")

ACCESS = RowType("""
    access: An operation that somebody gains or loses by a change.
    principal      string  `User:*`: everybody whom no other row names
    host           string  `*`: any host that no rule names
    operation      string
    resource       string  `topic orders`
    resource_type, resource_name  string
    before, after  allowed|denied|unknown
    used_by        array   groups with members or offsets there, which the principal may be
""")

USER = RowType("""
    user: A SCRAM credential of a user.
    name        string
    mechanism   string    SCRAM-SHA-256, SCRAM-SHA-512
    iterations  integer?  null: the export holds no credentials
""")

TOKEN = RowType("""
    token: A delegation token, without its secret.
    token_id          string
    owner             string   who a client with the token is, TYPE:NAME
    requester         string?  who asked for it; null before 3.3
    renewers          array    who else may renew it
    issue_timestamp   integer  milliseconds
    expiry_timestamp  integer  the end of its use unless it is renewed
    max_timestamp     integer  the end of its use in any case
""")

ISSUED_TOKEN = RowType("""
    issued_token: A delegation token that was just created, with its secret, which is shown this once.
    token_id  string  what a client logs in with by SCRAM, as user
    hmac      string?  and as password, in base64; null: it was written to the file
""")

QUOTA = RowType("""
    quota: A quota that is set, or in force for somebody.
    user       string?  `<default>`: users without their own; null: it is not about users
    client_id  string?
    ip         string?
    key        string   producer_byte_rate, consumer_byte_rate, request_percentage, ...
    value      number?  null: unlimited, or not known
    source     string?  the level that sets it: `user and client-id`, `default user`, ...
    why        string?  why the value is not known
""")
