#!/usr/bin/env bash
# Counts the lines, words and bytes of a text file, or of stdin, and prints them as JSON.
set -euo pipefail

usage="usage: count.sh [FILE]   (stdin when no file is given)"
if [ "${1:-}" = --help ]; then
    echo "$usage"
    exit 0
elif [ $# -gt 1 ]; then
    echo "$usage" >&2
    exit 2
elif [ $# -eq 1 ] && [ ! -r "$1" ]; then
    echo "count.sh: cannot read $1" >&2
    exit 1
fi

if [ $# -eq 1 ]; then counts=$(wc -l -w -c <"$1"); else counts=$(wc -l -w -c); fi
read -r lines words bytes <<<"$counts"
printf '{"lines": %d, "words": %d, "bytes": %d}\n' "$lines" "$words" "$bytes"
