# ruff: noqa: E501 - patterns and samples stand in one piece
"""Rules for secrets: the forms of providers' keys, names of secret fields, the user's own rules and key.

The forms are those that the providers document, and that gitleaks (config/gitleaks.toml, July 2026) and detect-secrets
look for.  Patterns are RE2's (linear time in the text, whatever it holds), over UTF-8 bytes.  Each has one group: what is
replaced.  A text must hold one of a rule's literals for its pattern to be tried.
"""

from __future__ import annotations

import errno
import os
from typing import Final, NamedTuple

from ctxctl.errors import UsageError


class Rule(NamedTuple):
    """Finds one kind of secret."""

    kind: str
    """The kind that a stub names."""
    literals: tuple[str, ...]
    """Texts of which every match holds one, in any case."""
    pattern: str
    """A pattern with one group; case counts unless it begins with `(?i)`."""
    weak: int = 0
    """How little the form alone shows.  1: placeholders are left; 2: words, numbers and names as well.

    For values without quotes.  3: `NAME=value`: references, types and words that describe a value are
    left.  4: `password: value`: names in code as well.  5: `password=value`: all
    that may be a name in code.  6: `password: "several words"`: sentences.
    """


_NAME: Final = (
    r"(?:password|passwd|passphrase|passcode|pwd|secret|token|credentials?|private[_.-]?key|signing[_.-]?key"
    r"|encryption[_.-]?key|master[_.-]?key|access[_.-]?key|account[_.-]?key|shared[_.-]?key|api[_.-]?key"
    r"|auth[_.-]?key|service[_.-]?key|license[_.-]?key|secret[_.-]?key)"
)
_LEAD: Final = r"(?i)(?:^|[^a-z0-9])[a-z0-9_.-]{0,60}"
_KIND: Final = r"(?:[_.-]?(?:key|id|value|hash|base64|b64|prod|dev|test|live|v?\d))?"
_SAYS: Final = r"[ \t]{0,4}(?::=|=>|:|=)(?:[ \t]|\\t){0,8}"
_QUOTE: Final = r"""\\{0,3}["'`]"""
_CLOSED: Final = rf"(?:{_QUOTE}|(?:\.\.\.|…)?(?:\s|\z))"
"""What ends a value in quotes; where the text was cut off, it has no other quote."""
_QUOTED_PASS: Final = (
    r"(?i)(?:(?:^|[^a-z0-9])[a-z0-9_.-]{0,60}(?:password|passwd|passphrase|passcode|pwd)|(?:^|[^a-z0-9])pass)"
    rf"(?:[_.-]?\d)?[ \t]{{0,4}}(?:\]|\))?(?:{_QUOTE})?{_SAYS}[rbuf]?"
)
_QUOTED_NAME: Final = rf"{_LEAD}{_NAME}{_KIND}[ \t]{{0,4}}(?:\]|\))?(?:{_QUOTE})?{_SAYS}(?:[rbuf]|\()?"
_NAMES: Final = ("pass", "pwd", "secret", "token", "credential", "key")
_PASS: Final = ("pass", "pwd")
_COLOUR: Final = r"\[[0-9;:]{0,16}[mK]"
"""The end of what colours a text in a terminal."""
_ENV_LEAD: Final = rf"(?:^|\\[nrtbf]|\\u[0-9A-Fa-f]{{4}}|{_COLOUR}|[^A-Za-z0-9_$])"
"""What stands in front of a variable's name; in a text inside JSON, a line ends with `\\n`."""
_ENV_PASS: Final = r"(?:[A-Z0-9]{0,20}(?:PASSWORD|PASSWD|PASSPHRASE|PASSCODE)|[A-Z0-9]{1,40}_(?:PASS|PWD))"
_ENV_NAME: Final = (
    r"(?:SECRET|TOKEN|CREDENTIALS?|(?:API|SECRET|PRIVATE|ACCESS|ACCOUNT|SHARED|AUTH|SERVICE|LICENSE|SIGNING"
    r"|ENCRYPTION|MASTER)_?KEY)"
)
_ENV_VALUE: Final = r"(?:_?[0-9]|_(?:PROD|DEV|TEST|LIVE|BASE64))?=([^\s\"'`\\;)]{2,}[^\s\"'`\\;),])"
_PASS_LEAD: Final = (
    rf"(?i)(?:^|\\[nrtbf]|\\u[0-9A-F]{{4}}|{_COLOUR}|[\s,;{{&\"'`*-])(?:[a-z0-9]{{1,40}}[_.-]){{0,8}}(?:password|passwd|passphrase|passcode|pwd)"
    r"(?:[_.-]?[0-9])?\*{0,2}"
)
_PASS_VALUE: Final = r"([^\s\"'`\\,;(){}\[\]<>|&=/~.][^\s\"'`\\,;(){}\[\]<>|]{3,})"
_PEM: Final = r"(?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?"

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        "private-key", ("PRIVATE KEY",), rf"(-----BEGIN {_PEM}-----(?:[^-]|-[^-])*(?:-----END {_PEM}-----)?)"
    ),
    Rule("putty-key", ("Private-Lines:",), r"(Private-Lines: \d+(?:\\r|\\n|[\r\n])[A-Za-z0-9+/=\\\r\nrn]+)"),
    Rule("age-key", ("AGE-SECRET-KEY-1",), r"(AGE-SECRET-KEY-1[0-9A-Z]{50,64})"),
    Rule("anthropic-key", ("sk-ant-",), r"\b(sk-ant-[A-Za-z0-9_-]{16,})"),
    Rule("openrouter-key", ("sk-or-",), r"\b(sk-or-(?:v\d-)?[A-Za-z0-9_-]{20,})"),
    Rule("openai-key", ("sk-",), r"\b(sk-(?:proj|svcacct|admin|service|None)-[A-Za-z0-9_-]{16,})"),
    Rule("api-key", ("sk-",), r"\b(sk-[A-Za-z0-9_-]{18,})", weak=2),
    Rule("github-token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"\b(gh[pousr]_[A-Za-z0-9_.-]{30,})"),
    Rule("github-token", ("github_pat_",), r"\b(github_pat_[A-Za-z0-9_]{22,})"),
    Rule(
        "gitlab-token",
        ("gl",),
        r"\b(gl(?:pat|dt|rt|rtr|cbt|ptt|ft|soat|imt|agent|oas|ffct)-[A-Za-z0-9_.-]{18,})",
    ),
    Rule(
        "aws-key-id",
        ("AKIA", "ASIA", "ABIA", "ACCA", "A3T"),
        r"\b((?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16})\b",
    ),
    Rule("aws-bedrock-key", ("ABSKQmVkcm9jaw",), r"(ABSKQmVkcm9jaw[A-Za-z0-9+/=_-]{40,})"),
    Rule("google-key", ("AIza",), r"\b(AIza[0-9A-Za-z_-]{35})"),
    Rule("google-key", ("AQ.",), r"\b(AQ\.[0-9A-Za-z_-]{40,})"),
    Rule("google-token", ("ya29.",), r"\b(ya29\.[0-9A-Za-z_-]{20,})"),
    Rule("google-client-secret", ("GOCSPX-",), r"\b(GOCSPX-[A-Za-z0-9_-]{20,})"),
    Rule("slack-token", ("xox",), r"\b(xox[abceoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,})"),
    Rule("slack-token", ("xoxd-",), r"\b(xoxd-[A-Za-z0-9%+/=_-]{20,})"),
    Rule("slack-token", ("xapp-",), r"\b(xapp-\d-[A-Za-z0-9]+-\d+-[A-Za-z0-9]+)"),
    Rule(
        "slack-webhook",
        ("hooks.slack",),
        r"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/([A-Za-z0-9/_+-]{20,})",
    ),
    Rule("discord-webhook", ("api/webhooks/",), r"api/webhooks/\d{5,22}/([A-Za-z0-9_-]{40,})"),
    Rule("teams-webhook", ("webhook.office.com",), r"webhook\.office\.com/webhookb2/([A-Za-z0-9@/_-]{40,})"),
    Rule("discord-token", (".",), r"\b([MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40})"),
    Rule("telegram-token", (":AA",), r"\b(\d{8,10}:AA[A-Za-z0-9_-]{32,35})"),
    Rule("stripe-key", ("sk_", "rk_"), r"\b([sr]k_(?:live|test|prod)_[0-9A-Za-z]{10,})"),
    Rule("webhook-secret", ("whsec_",), r"\b(whsec_[A-Za-z0-9+/=_-]{20,})"),
    Rule("npm-token", ("npm_",), r"\b(npm_[A-Za-z0-9]{30,})"),
    Rule("pypi-token", ("pypi-",), r"\b(pypi-[A-Za-z0-9_-]{50,})"),
    Rule("rubygems-key", ("rubygems_",), r"\b(rubygems_[0-9a-f]{40,})"),
    Rule("crates-token", ("cio",), r"\b(cio[A-Za-z0-9]{32})\b", weak=2),
    Rule("docker-token", ("dckr_",), r"\b(dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,})"),
    Rule("huggingface-token", ("hf_", "api_org_"), r"\b((?:hf|api_org)_[A-Za-z0-9]{30,})"),
    Rule("groq-key", ("gsk_",), r"\b(gsk_[A-Za-z0-9]{32,})"),
    Rule("xai-key", ("xai-",), r"\b(xai-[A-Za-z0-9]{40,})"),
    Rule("perplexity-key", ("pplx-",), r"\b(pplx-[A-Za-z0-9]{32,})"),
    Rule("replicate-token", ("r8_",), r"\b(r8_[A-Za-z0-9]{30,})"),
    Rule("nvidia-key", ("nvapi-",), r"\b(nvapi-[A-Za-z0-9_-]{40,})"),
    Rule("cerebras-key", ("csk-",), r"\b(csk-[A-Za-z0-9]{32,})"),
    Rule("tavily-key", ("tvly-",), r"\b(tvly-[A-Za-z0-9_-]{16,})"),
    Rule("langsmith-key", ("lsv2_", "ls__"), r"\b((?:lsv2_(?:pt|sk)|ls_)_[A-Za-z0-9_]{32,})"),
    Rule("pinecone-key", ("pcsk_",), r"\b(pcsk_[A-Za-z0-9_]{40,})"),
    Rule("jina-key", ("jina_",), r"\b(jina_[A-Za-z0-9_-]{40,})"),
    Rule("sendgrid-key", ("SG.",), r"\b(SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64})"),
    Rule("mailgun-key", ("key-", "pubkey-"), r"\b((?:pub)?key-[0-9a-f]{32})\b"),
    Rule("mailchimp-key", ("-us",), r"\b([0-9a-f]{32}-us\d{1,2})\b"),
    Rule("brevo-key", ("xkeysib-", "xsmtpsib-"), r"\b(x(?:key|smtp)sib-[0-9a-f]{64}-[A-Za-z0-9]{16})"),
    Rule("twilio-key", ("SK",), r"\b(SK[0-9a-f]{32})\b"),
    Rule("shopify-token", ("shp",), r"\b(shp(?:at|ca|pa|ss|it|ua|tka)_[0-9A-Za-z]{28,})"),
    Rule(
        "square-token", ("sq0", "EAAA"), r"\b(sq0(?:atp|csp|idp)-[0-9A-Za-z_-]{20,}|EAAA[A-Za-z0-9_-]{56,})"
    ),
    Rule("facebook-token", ("EAA",), r"\b(EAA[A-Za-z0-9]{80,})"),
    Rule("digitalocean-token", ("do",), r"\b(do[opr]_v1_[0-9a-f]{60,})"),
    Rule("linear-key", ("lin_",), r"\b(lin_(?:api|oauth)_[A-Za-z0-9]{32,})"),
    Rule("notion-token", ("ntn_", "secret_"), r"\b(ntn_[A-Za-z0-9]{40,}|secret_[A-Za-z0-9]{43})"),
    Rule("figma-token", ("fig",), r"\b(fig[dour]h?_[A-Za-z0-9_-]{36,})"),
    Rule("databricks-token", ("dapi",), r"\b(dapi[0-9a-f]{32}(?:-\d)?)\b"),
    Rule(
        "atlassian-token",
        ("ATATT3", "ATCTT3", "ATBB"),
        r"\b(AT(?:ATT3|CTT3)[A-Za-z0-9_=-]{60,}|ATBB[A-Za-z0-9_=-]{28,})",
    ),
    Rule("vault-token", ("hvs.", "hvb.", "hvr."), r"\b(hv[sbr]\.[A-Za-z0-9_-]{20,})"),
    Rule("terraform-token", (".atlasv1.",), r"([A-Za-z0-9]{10,20}\.atlasv1\.[A-Za-z0-9_=-]{50,})"),
    Rule("doppler-token", ("dp.",), r"\b(dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.-]{36,})"),
    Rule(
        "grafana-token", ("glsa_", "glc_"), r"\b(glsa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8}|glc_[A-Za-z0-9+/=]{32,})"
    ),
    Rule("newrelic-key", ("NRAK-", "NRJS-", "NRII-"), r"\b(NR(?:AK|JS|II)-[A-Za-z0-9_-]{19,})"),
    Rule("sentry-token", ("sntry",), r"\b(sntry[su]_[A-Za-z0-9+/=_-]{40,})"),
    Rule("planetscale-token", ("pscale_",), r"\b(pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{30,})"),
    Rule("supabase-key", ("sbp_", "sb_secret_"), r"\b(sbp_[0-9a-f]{40}|sb_secret_[A-Za-z0-9_-]{20,})"),
    Rule("postman-key", ("PMAK-",), r"\b(PMAK-[0-9a-fA-F]{24}-[0-9a-fA-F]{34})"),
    Rule("airtable-token", ("pat",), r"\b(pat[A-Za-z0-9]{14}\.[0-9a-f]{60,})"),
    Rule("hubspot-token", ("pat-",), r"\b(pat-(?:na|eu|ap)\d-[0-9a-fA-F-]{36})"),
    Rule("fly-token", ("fm1", "fm2", "fo1_"), r"\b(f(?:m[12][ar]?|o1)_[A-Za-z0-9+/=,_-]{40,})"),
    Rule("heroku-key", ("HRKU-",), r"\b(HRKU-[A-Za-z0-9_-]{30,})"),
    Rule("dropbox-token", ("sl.",), r"\b(sl\.[A-Za-z0-9_-]{60,})"),
    Rule("artifactory-key", ("AKCp",), r"\b(AKCp[A-Za-z0-9]{60,})"),
    Rule("openshift-token", ("sha256~",), r"\b(sha256~[A-Za-z0-9_-]{40,})"),
    Rule("easypost-key", ("EZ",), r"\b(EZ[AT]K[A-Za-z0-9]{50,})"),
    Rule("azure-secret", ("Q~",), r"([A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34})"),
    Rule(
        "azure-key",
        ("AccountKey", "SharedAccessKey"),
        r"(?i)(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/=]{30,})",
    ),
    Rule(
        "onepassword-key",
        ("A3-",),
        r"\b(A3-[A-Z0-9]{6}-[A-Z0-9]{5,6}-?[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}(?:-[A-Z0-9]{5})?)\b",
    ),
    Rule("onepassword-token", ("ops_eyJ",), r"\b(ops_eyJ[A-Za-z0-9+/=_-]{60,})"),
    Rule("adobe-secret", ("p8e-",), r"\b(p8e-[A-Za-z0-9]{32})\b"),
    Rule("alibaba-key-id", ("LTAI",), r"\b(LTAI[A-Za-z0-9]{12,24})\b", weak=2),
    Rule("artifactory-token", ("cmVmd",), r"\b(cmVmd[A-Za-z0-9]{59})\b"),
    Rule(
        "authress-key",
        (".acc",),
        r"\b((?:sc|ext|scauth|authress)_[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_-][A-Za-z0-9-]{10,32}\.[A-Za-z0-9+/_=-]{30,120})",
    ),
    Rule("aws-bedrock-key", ("bedrock-api-key-",), r"(bedrock-api-key-[A-Za-z0-9+/=_-]{30,})"),
    Rule("buildkite-token", ("bkua_", "bkct_"), r"\b(bk(?:ua|ct)_[A-Za-z0-9]{32,})"),
    Rule("circleci-token", ("CCIPAT_", "CCIPRJ_"), r"\b(CCIP(?:AT|RJ)_[A-Za-z0-9_]{40,})"),
    Rule("clickhouse-key", ("4b1d",), r"\b(4b1d[A-Za-z0-9]{38})\b", weak=2),
    Rule("clojars-token", ("CLOJARS_",), r"\b(CLOJARS_[0-9a-f]{60})\b"),
    Rule("cloudflare-key", ("v1.0-",), r"\b(v1\.0-[a-f0-9]{24}-[a-f0-9]{146})\b"),
    Rule("cloudflare-key", ("cfk_", "cfut_", "cfat_"), r"\b(cf(?:k|ut|at)_[A-Za-z0-9]{40,})"),
    Rule("contentful-token", ("CFPAT-",), r"\b(CFPAT-[A-Za-z0-9_-]{40,})"),
    Rule("deno-token", ("ddp_", "ddw_", "ddo_"), r"\b(dd[pwo]_[A-Za-z0-9]{36,})\b"),
    Rule("duffel-token", ("duffel_",), r"\b(duffel_(?:test|live)_[A-Za-z0-9_=-]{40,})"),
    Rule("dynatrace-token", ("dt0",), r"\b(dt0[a-z]\d{2}\.[A-Z0-9]{8,24}\.[A-Z0-9]{60,64})\b"),
    Rule("elevenlabs-key", ("sk_",), r"\b(sk_[0-9a-f]{48})\b"),
    Rule("fireworks-key", ("fw_",), r"\b(fw_[A-Za-z0-9]{22,})\b", weak=2),
    Rule("flutterwave-key", ("FLWSECK",), r"\b(FLWSECK(?:_TEST)?-[A-Za-z0-9]{12,}(?:-X)?)"),
    Rule("frameio-token", ("fio-u-",), r"\b(fio-u-[A-Za-z0-9_=-]{60,})"),
    Rule("gitlab-token", ("GR1348941",), r"\b(GR1348941[A-Za-z0-9_-]{20,})"),
    Rule("google-token", ("1//0",), r"\b(1//0[A-Za-z0-9_-]{30,})"),
    Rule("grafana-token", ("eyJrIjoi",), r"\b(eyJrIjoi[A-Za-z0-9]{60,}={0,3})"),
    Rule(
        "harness-key", ("pat.", "sat."), r"\b([ps]at\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20})\b"
    ),
    Rule("honeycomb-key", ("hca", "hcb"), r"\b(hc[ab][a-z]{2}_[A-Za-z0-9]{30,})\b"),
    Rule("infracost-key", ("ico-",), r"\b(ico-[A-Za-z0-9]{32})\b"),
    Rule("langfuse-key", ("sk-lf-", "pk-lf-"), r"\b([sp]k-lf-[0-9a-f-]{36})\b"),
    Rule(
        "launchdarkly-key", ("sdk-", "mob-"), r"\b((?:sdk|mob)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b"
    ),
    Rule("logfire-token", ("pylf_v",), r"\b(pylf_v\d_[A-Za-z0-9_]{20,})"),
    Rule("mapbox-token", ("sk.eyJ",), r"\b(sk\.eyJ[A-Za-z0-9_-]{40,}\.[A-Za-z0-9_-]{16,})"),
    Rule("maxmind-key", ("_mmk",), r"\b([A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk)\b"),
    Rule("neon-key", ("napi_",), r"\b(napi_[a-z0-9]{60,})\b"),
    Rule("netlify-token", ("nfp_",), r"\b(nf[pcou]_[A-Za-z0-9]{36,})\b"),
    Rule("octopus-key", ("API-",), r"\b(API-[A-Z0-9]{26})\b", weak=2),
    Rule("posthog-key", ("phx_",), r"\b(phx_[A-Za-z0-9]{36,})\b"),
    Rule("prefect-key", ("pnu_",), r"\b(pnu_[A-Za-z0-9]{36})\b"),
    Rule("pulumi-token", ("pul-",), r"\b(pul-[0-9a-f]{40})\b"),
    Rule("razorpay-key", ("rzp_",), r"\b(rzp_(?:live|test)_[A-Za-z0-9]{14,})\b"),
    Rule("readme-key", ("rdme_",), r"\b(rdme_[a-z0-9]{70})\b"),
    Rule("render-key", ("rnd_",), r"\b(rnd_[A-Za-z0-9]{28,})\b"),
    Rule("scalingo-token", ("tk-us-",), r"\b(tk-us-[A-Za-z0-9_-]{48})"),
    Rule("settlemint-token", ("sm_",), r"\b(sm_[aps]at_[A-Za-z0-9]{16,})\b"),
    Rule("shippo-token", ("shippo_",), r"\b(shippo_(?:live|test)_[0-9a-fA-F]{40})\b"),
    Rule("sonar-token", ("sqp_", "squ_", "sqa_"), r"\b(sq[pua]_[0-9a-f]{40})\b"),
    Rule("sourcegraph-token", ("sgp_",), r"\b(sgp_(?:[0-9a-fA-F]{16}_|local_)?[0-9a-fA-F]{40})\b"),
    Rule("tailscale-key", ("tskey-",), r"\b(tskey-[a-z]{3,10}-[A-Za-z0-9-]{12,})"),
    Rule("together-key", ("tgp_v1_",), r"\b(tgp_v1_[A-Za-z0-9_-]{40,})"),
    Rule("typeform-token", ("tfp_",), r"\b(tfp_[A-Za-z0-9_.=-]{59})"),
    Rule("vault-token", ("s.",), r"\b(s\.[A-Za-z0-9]{24})\b", weak=2),
    Rule("vercel-token", ("vcp_", "vci_", "vca_", "vcr_", "vck_"), r"\b(vc[piark]_[A-Za-z0-9]{24,})", weak=2),
    Rule("e2b-key", ("e2b_",), r"\b(e2b_[0-9a-f]{40})\b"),
    Rule("firecrawl-key", ("fc-",), r"\b(fc-[0-9a-f]{32})\b", weak=2),
    Rule("resend-key", ("re_",), r"\b(re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24})\b", weak=2),
    Rule("modal-token", ("ak-", "as-"), r"\b(a[ks]-[A-Za-z0-9]{22})\b", weak=2),
    Rule("cursor-key", ("key_", "crsr_"), r"\b((?:key|crsr)_[0-9a-f]{64})\b", weak=2),
    Rule("helicone-key", ("pk-helicone-",), r"\b(pk-helicone-[A-Za-z0-9-]{20,})", weak=2),
    Rule("apify-token", ("apify_api_",), r"\b(apify_api_[A-Za-z0-9]{36})\b"),
    Rule("runpod-key", ("rpa_",), r"\b(rpa_[A-Za-z0-9]{40,})\b", weak=2),
    Rule("daytona-key", ("dtn_",), r"\b(dtn_[0-9a-f]{64})\b"),
    Rule("voyage-key", ("pa-",), r"\b(pa-[A-Za-z0-9_-]{43})(?:[^A-Za-z0-9_-]|\z)", weak=2),
    Rule("mem0-key", ("m0-",), r"\b(m0-[A-Za-z0-9]{40})\b", weak=2),
    Rule("wandb-key", ("wandb_v",), r"\b(wandb_v\d_[A-Za-z0-9_]{40,})"),
    Rule(
        "netrc-password",
        ("machine",),
        r"\bmachine\s+\S{1,200}\s+login\s+\S{1,200}\s+password\s+([^\s\"'\\]{3,})",
    ),
    Rule(
        "private-key",
        ("PRIVATE KEY",),
        rf"((?:[A-Za-z0-9+/=]{{4,100}}(?:\s|\\[nrt]){{1,16}})*[A-Za-z0-9+/=]{{0,100}}(?:\s|\\[nrt]){{0,16}}-----END {_PEM}-----)",
    ),
    Rule("jwt", ("eyJ",), r"\b(eyJ[A-Za-z0-9_-]{8,}\.(?:eyJ)?[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)*)"),
    Rule(
        "auth-header",
        ("authorization",),
        r"(?i)authorization\\{0,3}[\"']?\s*(?::|=|,|=>)\s*\[?\s*\\{0,3}[\"']?\s*(?:basic|bearer|token|negotiate|api-?key|ssws|splunk|aws4-hmac-sha256)\s+(?:[a-z_]{1,20}=\\?\"?)?([^\s\"'\\,;<>{}]{6,})",
        weak=1,
    ),
    Rule(
        "auth-header",
        ("authorization",),
        r"(?i)authorization\\{0,3}[\"']?\s*[:=]\s*\\{0,3}[\"']?(?:[a-z][a-z0-9-]{1,30}[ \t]+)?([^\s\"'\\,;<>{}]{8,})",
        weak=2,
    ),
    Rule("signature", ("signature=",), r"\bSignature=([0-9a-fA-F]{32,})"),
    Rule("auth-header", ("digest",), r"(?i)\bdigest\s[^\r\n]{0,800}?\bresponse=\\?\"([0-9a-z]{16,})", weak=1),
    Rule(
        "header",
        ("key", "token", "secret", "authorization", "signature"),
        r"(?i)(?:^|[^a-z0-9])(?:x-(?:api-key|goog-api-key|auth-token|access-token|session-token|vault-token"
        r"|amz-security-token|github-token|gitlab-token|csrf-token|functions-key)|private-token"
        r"|proxy-authorization|ocp-apim-subscription-key|cf-access-client-secret)"
        r"\\{0,3}[\"']?\s*[:=]\s*\\{0,3}[\"']?([^\s\"'\\,;<>{}]{4,})",
        weak=1,
    ),
    Rule("bearer-token", ("bearer",), r"(?i)\bbearer[ :=]{1,3}([A-Za-z0-9_.~+/=-]{16,})", weak=2),
    Rule(
        "basic-auth",
        ("basic",),
        r"(?i)\bbasic ([a-z0-9+/]{12,}={1,2}|[a-z+/]{0,40}[0-9][a-z0-9+/]{12,})",
        weak=2,
    ),
    Rule(
        "cookie",
        ("cookie",),
        r"(?im)(?:^|[^a-z]|\\[nrt])(?:set-)?cookie\\{0,3}[\"']?\s*:\s*\\{0,3}[\"']?(?:[^\s=;\"'\\]{1,80};\s*){0,8}"
        r"([^\s=;\"'\\]{1,80}=(?:\\?\"[^\s\"\\]{0,200}\\?\"|'[^\s']{0,200}'|[^\r\n\"'\\]){4,})",
    ),
    Rule(
        "url-token",
        ("://", ":\\/\\/"),
        r":(?:\\?/){2}([^\s/:@?#\"'<>\\]{16,})(?::[^\s/@\"'<>\\]{0,64})?@",
        weak=2,
    ),
    Rule(
        "url-password",
        ("://", ":\\/\\/"),
        r":(?:\\?/){2}[^\s/:\"'<>\\]{0,200}:([^\s/@\"'<>\\]{2,})@",
        weak=1,
    ),
    Rule(
        "url-parameter",
        ("=",),
        r"(?i)[?&;](?:x-(?:amz|goog)-(?:signature|credential|security-token)|sig|signature|access_token|refresh_token|id_token|auth_token|token|api[_-]?key|apikey|key|auth|password|passwd|pwd|secret|client_secret|code_verifier)=([^&\s\"'<>#\\]{8,})",
        weak=2,
    ),
    Rule(
        "curl-user",
        ("curl",),
        r"curl\b[^\n]{0,300}?\s(?:-u|--user)[ =][\"']?[^\s:\"']{1,80}:([^\s\"'\\]{3,})",
    ),
    Rule("password", _PASS, rf"{_QUOTED_PASS}{_QUOTE}([^\s\"'`\\]{{4,}})(?:{_QUOTE}|\z)", weak=1),
    Rule("secret", _NAMES, rf"{_QUOTED_NAME}{_QUOTE}([^\s\"'`\\]{{6,}}){_CLOSED}", weak=2),
    *(
        Rule(
            "password", _PASS, rf"{_QUOTED_PASS}{quote}((?:[^\r\n\\{quote}]|\\[^\r\n]){{4,}}){quote}", weak=6
        )
        for quote in "\"'"
    ),
    *(
        Rule("secret", _NAMES, rf"{_QUOTED_NAME}{quote}((?:[^\s\\{quote}]|\\\S){{6,}})(?:{quote}|\z)", weak=2)
        for quote in "\"'"
    ),
    Rule(
        "secret",
        _NAMES,
        rf"{_LEAD}{_NAME}{_KIND}[ \t]{{0,2}}(?:=|:[ \t])[ \t]{{0,2}}"
        r"([^\s\"'`\\,;(){}\[\]<>|&]{8,})",
        weak=2,
    ),
    Rule(
        "secret",
        _NAMES,
        rf"(?i)(?:^|[\s\"'`])--?[a-z0-9-]{{0,40}}{_NAME}[ \t]+([^\s\"'`\\-][^\s\"'`\\]{{5,}})",
        weak=2,
    ),
    Rule("secret", _NAMES, rf"(?i)<[a-z0-9_.:-]{{0,40}}{_NAME}>([^<>\s]{{4,}})</", weak=2),
    Rule(
        "secret",
        _NAMES,
        rf"(?i)(?:name:\s{{0,4}}[\"']?[a-z0-9_]{{0,60}}{_NAME}[\"']?(?:\s|\\[nr]){{1,40}}value:[ \t]{{0,4}}[\"']?"
        rf"|(?:^|\n|\\n)ENV[ \t]+[a-z0-9_]{{0,60}}{_NAME}[ \t]+)([^\s\"'\\]{{4,}})",
        weak=2,
    ),
    Rule("password", _PASS, rf"{_ENV_LEAD}(?:[A-Z0-9]{{1,40}}_){{0,8}}{_ENV_PASS}{_ENV_VALUE}", weak=3),
    Rule("secret", _NAMES, rf"{_ENV_LEAD}(?:[A-Z0-9]{{1,40}}_){{0,8}}{_ENV_NAME}{_ENV_VALUE}", weak=3),
    Rule(
        "password",
        _PASS,
        rf"{_PASS_LEAD}:\*{{0,2}}(?:[ \t]|\\t){{1,8}}{_PASS_VALUE}(?:[ \t]{{0,8}}(?:[\r\n]|$|#)|[\"'`\\])",
        weak=4,
    ),
    Rule(
        "password",
        _PASS,
        rf"{_PASS_LEAD}(?:=|[ \t]{{1,8}}=[ \t]{{0,8}}){_PASS_VALUE}(?:[\s;\"'`\\]|$)",
        weak=5,
    ),
)
"""The rules in the order in which they are tried; what one has replaced, the next ones do not see."""

HEADERS: Final = frozenset(
    (
        "authorization", "proxyauthorization", "cookie", "setcookie", "xapikey", "apikey", "xgoogapikey", "xauthtoken",
        "xamzsecuritytoken", "xamzsignature", "xcsrftoken", "xxsrftoken", "xgithubtoken", "openaiorganization",
        "openaiproject", "anthropicorganizationid", "xaccesstoken", "xsessiontoken", "ocpapimsubscriptionkey",
        "xvaulttoken", "privatetoken", "xgitlabtoken", "cfaccessclientsecret", "xfunctionskey", "authentication",
        "xforwardedauthorization", "xmsauthorizationauxiliary", "awssecretaccesskey", "awssessiontoken",
    )
)  # fmt: skip
"""Names, without case, `-`, `_` and `.`, whose values are never stored."""
FIELDS: Final = frozenset(
    (
        "password", "passwd", "pwd", "passphrase", "passcode", "secret", "clientsecret", "appsecret", "secretkey",
        "secretaccesskey", "privatekey", "privatekeyid", "signingkey", "encryptionkey", "masterkey", "accountkey",
        "accesskey", "authkey", "token", "accesstoken", "refreshtoken", "idtoken", "authtoken", "bearertoken",
        "sessiontoken", "securitytoken", "apitoken", "apisecret", "webhooksecret", "credentials", "connectionstring",
        "usertoken", "bottoken", "githubtoken", "personalaccesstoken", "dbpassword", "databasepassword", "userpassword",
        "adminpassword", "rootpassword", "openaiapikey", "anthropicapikey", "googleapikey", "geminiapikey",
        "azureapikey",
    )
)  # fmt: skip
"""Names, folded likewise, whose values are replaced if they are texts."""
SUFFIXES: Final = (
    "password", "passwd", "passphrase", "passcode", "pass", "pwd", "secret", "token", "apikey", "accesskey",
    "secretkey", "privatekey", "signingkey", "encryptionkey", "masterkey", "openaikey", "anthropickey",
)  # fmt: skip
"""Ends of further names of such values: `POSTGRES_PASSWORD`, `smtpPassword`."""


_BYTES: Final = 32
_RULES: Final = 1000


def user_key() -> bytes:
    """Return this user's key for the digests of stubs, made at first use (`redaction.key`, mode 0600).

    Where it cannot be stored or is not safe (another owner, a symbolic link, open to others), it is a new key
    for this process only, and the stubs of two runs do not compare.
    """
    try:
        return _stored(os.path.join(_state_directory(), "redaction.key"))
    except (OSError, ValueError):
        return os.urandom(_BYTES)


def _state_directory() -> str:
    """Return the state directory, found without a package, as every traced program pays for the import."""
    given = os.environ.get("CTXCTL_STATE_DIR")
    if given:
        return given
    base = os.environ.get("XDG_STATE_HOME") or ""
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(base, "ctxctl")


def _stored(path: str) -> bytes:
    try:
        return _read(path)
    except FileNotFoundError:
        pass
    from pathlib import Path

    from ctxctl.user_folders import make_private

    make_private(Path(path).parent)
    # Written beside and linked: a second process reads the first one's key whole.
    beside = f"{path}.{os.urandom(8).hex()}"
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        if os.write(fd, os.urandom(_BYTES)) != _BYTES:
            # Linked, half a key would be refused for ever.
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.link(beside, path)
    except FileExistsError:
        pass
    finally:
        os.close(fd)
        os.unlink(beside)
    return _read(path)


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        found = os.fstat(fd)
        if found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise ValueError("not this user's alone")
        key = os.read(fd, _BYTES + 1)
    finally:
        os.close(fd)
    if len(key) != _BYTES:
        raise ValueError("not a key")
    return key


def rules_of(path: str) -> tuple[list[Rule], list[str]]:
    """Return the user's rules, and the names of fields whose values are never stored.

    A TOML file: `[[rule]]` tables with `kind` and `pattern` (RE2 syntax; its one group, or else all of it, is
    replaced), optionally `literals`; and `names = [...]`.

    Raises:
        UsageError: `bad-redaction-rules`; nothing is recorded with half of the rules.
    """
    import tomllib

    try:
        with open(path, "rb") as file:
            table = tomllib.load(file)
    except OSError as error:
        raise UsageError("bad-redaction-rules", f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError("bad-redaction-rules", f"{path}: not TOML: {error}") from None
    entries, names = table.get("rule", []), table.get("names", [])
    if not isinstance(entries, list) or not _texts(names) or len(entries) > _RULES:
        raise UsageError(
            "bad-redaction-rules", f"{path}: `rule` is a list of tables and `names` one of texts"
        )
    unknown = sorted(set(table) - {"rule", "names"})
    if unknown:
        raise UsageError("bad-redaction-rules", f"{path}: nothing is known of `{unknown[0]}`")
    return [_rule(entry, f"{path}: rule {at}") for at, entry in enumerate(entries, 1)], list(names)


def _rule(entry: object, where: str) -> Rule:
    from ctxctl import linear
    from ctxctl.linear import re2

    if not isinstance(entry, dict):
        raise UsageError("bad-redaction-rules", f"{where} is not a table")
    kind, pattern, literals = entry.get("kind"), entry.get("pattern"), entry.get("literals", [])
    if not isinstance(kind, str) or not isinstance(pattern, str) or not pattern or not _texts(literals):
        raise UsageError("bad-redaction-rules", f"{where}: `kind` and `pattern` are texts, `literals` a list")
    if not kind.replace("-", "").isalnum() or not kind.isascii() or len(kind) > 40:
        raise UsageError("bad-redaction-rules", f"{where}: `kind` holds more than letters, digits and `-`")
    options = re2.Options()
    options.log_errors = False
    try:
        groups = re2.compile(pattern.encode(), options).groups
        linear.check_bounded(pattern)
    except re2.error as error:
        raise UsageError("bad-redaction-rules", f"{where}: no pattern of RE2: {error}") from None
    if groups > 1:
        raise UsageError("bad-redaction-rules", f"{where}: {groups} groups; write `(?:…)` for all but one")
    return Rule(kind, tuple(literals), pattern if groups else f"({pattern})")


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) and one for one in value)
