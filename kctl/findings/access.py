"""What is wrong, or worth a look, among rules of access and credentials."""

from kctl.findings import info, warning

NEVER_MATCHES = info("""acl-never-matches
    The rule `{acl}` matches nothing: {why}.
    The rule allows or denies nothing now. Somebody may rely on it.
    A name with a mistake, a host that is not an address, an operation that brokers do not check on such a resource, or
        something that was deleted or is still to come.
    Correct the rule, or delete it with `kctl acl delete`.""")
SHADOWED = info("""acl-shadowed
    The rule `{acl}` decides nothing: `{other}` {how}.
    The answer is the same without the rule.
    A broader rule was added later, or another rule denies all that this one allows.
    Delete the one that is not meant; `kctl acl delete --dry-run` shows what would change.""")
DENIES_NOTHING = info("""acl-denies-nothing
    The rule `{acl}` denies what no rule allows.
    What it denies is denied without it, unless a rule that allows it is added later.
    The rule that allowed it was deleted, or the rule is a precaution.
    Nothing, or delete it.""")
WIDE_OPEN = warning("""acl-wide-open
    The rule `{acl}` lets {whom} change {what}.
    Whoever it names and can connect may write there, or change or delete it.
    The rule was made for a test, or in place of one for each application.
    Name principals and topics: `kctl acl create`, then delete this rule.""")
WITHOUT_USER = info("""acl-without-user
    Rules name {principal}, who has no SCRAM credential.
    Nobody can log in as that user by SCRAM. By certificates, Kerberos, PLAIN or tokens somebody may.
    The user was deleted, or the name has a mistake, or users of several mechanisms are in use.
    Delete the rules if the user is gone: `kctl acl delete --principal User:NAME`.""")
USER_WITHOUT = info("""user-without-acl
    User {user} has a SCRAM credential, and no rule names it.
    The user can log in and may do only what rules allow everybody.
    The user's rules were deleted, or name another spelling; or the user is a super user.
    Delete the user, or create its rules.""")
REACHES_INTERNAL = warning("""acl-reaches-internal-topics
    The rule `{acl}` reaches {topics}.
    Whoever may write to internal topics can change offsets of every group and states of transactions.
    A prefix is shorter than meant, or a topic's name begins with an underscore.
    Use a longer prefix, or name each topic.""")
UNREADABLE = warning("""acl-unreadable
    {path} cannot be read: {what}.
    Brokers do not know the rules there either, or fail to start.
    A tool wrote the znode, or the evidence is damaged.
    Inspect it with `kctl znode show PATH`; write the rules again with `kctl acl create`.""")
