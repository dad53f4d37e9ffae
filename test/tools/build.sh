#!/usr/bin/env bash
# Builds the tools that go.mod beside this script pins into bin/tools of the
# repository; does nothing when they are there.
# The stamp covers everything that decides their content, so that a restored
# cache is used whatever the file times of a fresh checkout say.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
out=../../bin/tools
mkdir -p "$out"

want="$({ cat go.mod go.sum; go version; } | git hash-object --stdin)"
if [[ -f "$out/stamp" && "$(<"$out/stamp")" == "$want" ]]; then
  exit 0
fi

# Neither a workspace nor the caller's flags may move these pins.
export GOWORK=off GOFLAGS=-mod=readonly CGO_ENABLED=0
rm -f "$out/stamp"
for package in $(go list tool); do
  echo "building ${package##*/}"
  go build -p 2 -buildvcs=false -trimpath -ldflags='-s -w' -o "$out/" "$package"
done
echo "$want" >"$out/stamp"
