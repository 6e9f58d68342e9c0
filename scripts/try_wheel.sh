#!/bin/sh
# Install that wheel of dist/ that fits this machine, as a user does but without a compiler, and replay an example.
#
#     sh scripts/try_wheel.sh TAG    TAG: a part of the tag that the wheel has to have (none-any, musllinux)
set -eu
cd "$(dirname "$0")/.."
version=$(basename dist/ctxctl-*-none-any.whl | cut -d- -f2)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --only-binary :all: --find-links dist "ctxctl==$version"
"$folder/venv/bin/python" -c 'if True:
    import sys
    from importlib.metadata import distribution
    told = distribution("ctxctl").read_text("WHEEL")
    sys.exit(0 if sys.argv[1] in told else f"another wheel was taken:\n{told}")' "$1"
test "$("$folder/venv/bin/ctxctl" --version)" = "ctxctl $version"
"$folder/venv/bin/ctxctl" replay --json traces/coding-agent.jsonl >"$folder/replay.jsonl"
steps=$(grep -c '"type":"step"' "$folder/replay.jsonl")
echo "ctxctl $version ($1, $(uname -sm), $("$folder/venv/bin/python" --version)): $steps steps replayed"
test "$steps" -eq 59
