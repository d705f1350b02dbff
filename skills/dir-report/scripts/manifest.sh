#!/usr/bin/env bash
# Write a checksum manifest of a directory, or compare a directory with one.
set -euo pipefail
export LC_ALL=C

usage() {
    cat <<'USAGE'
usage: manifest.sh create DIRECTORY
       manifest.sh compare DIRECTORY MANIFEST

create   print a SHA-256 manifest of all regular files, sorted by name, in the form that sha256sum reads
compare  print what differs from the manifest as tab-separated records: added, changed or removed, then the name

Example: scripts/manifest.sh create work/inputs > out/SHA256SUMS
         scripts/manifest.sh compare work/inputs out/SHA256SUMS > out/changes.tsv
USAGE
}

fail() {
    printf 'manifest.sh: %s\n' "$1" >&2
    exit 2
}

# Links are not followed, so nothing outside the directory is read.
create() {
    (cd -- "$1" && find . -type f -printf '%P\0' | sort -z | xargs -0 -r sha256sum --)
}

# Lines are `sum  name`; names with a newline or backslash start with a backslash and are escaped by sha256sum itself.
check_manifest() {
    local line number=0
    while IFS= read -r line || [[ -n $line ]]; do
        number=$((number + 1))
        [[ $line =~ ^\\?[0-9a-f]{64}\ [\ *]. ]] || {
            printf 'manifest.sh: %s: line %d is not a checksum line\n' "$1" "$number" >&2
            return 1
        }
    done <"$1"
}

# Both sides are turned into `name, byte 1, sum`, which join can match whatever the name holds.
by_name() {
    sed -E 's/^(\\?)([0-9a-f]{64}) [ *](.*)$/\1\3\x01\2/' | sort -t $'\001' -k 1,1
}

compare() {
    local scratch differences
    scratch=$(mktemp -d)
    # shellcheck disable=SC2064 # The path is known now and must not change later.
    trap "rm -rf -- '$scratch'" EXIT
    check_manifest "$2" || return 1
    by_name <"$2" >"$scratch/old"
    create "$1" | by_name >"$scratch/new"
    join -t $'\001' -a 1 -a 2 -e - -o 0,1.2,2.2 "$scratch/old" "$scratch/new" >"$scratch/both"
    differences=0
    local name old new
    while IFS=$'\001' read -r name old new; do
        if [[ $old == "$new" ]]; then continue; fi
        differences=1
        if [[ $old == - ]]; then
            printf 'added\t%s\n' "$name"
        elif [[ $new == - ]]; then
            printf 'removed\t%s\n' "$name"
        else
            printf 'changed\t%s\n' "$name"
        fi
    done <"$scratch/both"
    return "$differences"
}

case ${1-} in
-h | --help)
    usage
    ;;
create)
    (($# == 2)) || fail "create needs a directory; see --help"
    [[ -d $2 ]] || fail "$2 is not a directory"
    create "$2"
    ;;
compare)
    (($# == 3)) || fail "compare needs a directory and a manifest; see --help"
    [[ -d $2 ]] || fail "$2 is not a directory"
    [[ -r $3 && ! -d $3 ]] || fail "$3 cannot be read"
    compare "$2" "$3"
    ;;
*)
    fail "unknown command ${1:-(none)}; see --help"
    ;;
esac
