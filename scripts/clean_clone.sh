#!/usr/bin/env bash
# Try the project as a newcomer gets it: the files git would hold, in an empty directory with an empty home.
#   scripts/clean_clone.sh           the two commands of the README
#   scripts/clean_clone.sh CMD…      that command instead, there
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
mkdir "$place/home" "$place/ctxctl"
git ls-files -z --cached --others --exclude-standard | tar --null --ignore-failed-read -T - -cf - | tar -xf - -C "$place/ctxctl"
cd "$place/ctxctl"
git init --quiet
git add --all

unset VIRTUAL_ENV PYTHONPATH MAKEFLAGS MAKELEVEL
export HOME="$place/home"
if [ "$#" -gt 0 ]; then
    "$@"
    exit
fi
make demo </dev/null | head -n 30
make test
