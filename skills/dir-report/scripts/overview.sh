#!/usr/bin/env bash
# Describe a directory as tab-separated records: totals, types, largest files, duplicates, links, oddities.
set -euo pipefail
export LC_ALL=C

usage() {
    cat <<'USAGE'
usage: overview.sh [--top N] [--no-duplicates] DIRECTORY

Describe a directory as tab-separated records on standard output.

  --top N           how many of the largest files to list (10)
  --no-duplicates   do not compare contents; faster on large trees
  -h, --help        this text

Example: scripts/overview.sh work/inputs > out/overview.tsv
USAGE
}

fail() {
    printf 'overview.sh: %s\n' "$1" >&2
    exit 2
}

# Print one record; inside a field, backslash, tab, newline and carriage return are spelled out.
record() {
    local line=$1 field
    shift
    for field in "$@"; do
        field=${field//\\/\\\\}
        field=${field//$'\t'/\\t}
        field=${field//$'\n'/\\n}
        line+=$'\t'${field//$'\r'/\\r}
    done
    printf '%s\n' "$line"
}

top=10
duplicates=yes
directory=
while (($#)); do
    case $1 in
    -h | --help)
        usage
        exit 0
        ;;
    --top)
        [[ ${2-} =~ ^[0-9]{1,6}$ ]] || fail "--top needs a number"
        top=$((10#$2))
        shift
        ;;
    --no-duplicates) duplicates=no ;;
    -*) fail "unknown option $1" ;;
    *)
        [[ -z $directory ]] || fail "give one directory"
        directory=$1
        ;;
    esac
    shift
done
[[ -n $directory ]] || fail "a directory is needed; see --help"
[[ -d $directory ]] || fail "$directory is not a directory"
root=$(realpath -- "$directory")
scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT

# One pass over the tree: kind, size and path of everything, in a fixed order. A slash separates them, since it is the one
# character that neither starts nor ends a path.
unreadable=0
find "$root" -mindepth 1 -printf '%y/%s/%P\0' 2>"$scratch/errors" | sort -z -t / -k 3 >"$scratch/all" || unreadable=1

declare -A type_count=() type_bytes=() size_count=()
files=0 directories=0 links=0 specials=0 bytes=0 findings=0
: >"$scratch/files"
: >"$scratch/odd"
while IFS=/ read -r -d '' kind size path; do
    case $kind in
    f)
        files=$((files + 1))
        bytes=$((bytes + size))
        name=${path##*/}
        suffix=${name##*.}
        # A leading dot hides a file and starts no suffix.
        if [[ $suffix == "$name" || ${name%.*} == "" ]]; then suffix=none; else suffix=.${suffix,,}; fi
        type_count[$suffix]=$((${type_count[$suffix]-0} + 1))
        type_bytes[$suffix]=$((${type_bytes[$suffix]-0} + size))
        size_count[$size]=$((${size_count[$size]-0} + 1))
        printf '%s/%s\0' "$size" "$path" >>"$scratch/files"
        if ((size == 0)); then record empty "$path" >>"$scratch/odd"; fi
        ;;
    d) directories=$((directories + 1)) ;;
    l)
        links=$((links + 1))
        target=$(readlink -- "$root/$path"; printf x)
        target=${target%$'\n'x}
        state=inside
        if [[ ! -e $root/$path ]]; then
            state=dangling
        elif resolved=$(realpath -- "$root/$path"); [[ $resolved != "$root" && $resolved != "$root"/* ]]; then
            state=outside
        fi
        [[ $state == inside ]] || findings=$((findings + 1))
        record link "$state" "$path" "$target" >>"$scratch/odd"
        ;;
    *)
        specials=$((specials + 1))
        findings=$((findings + 1))
        record special "$kind" "$path" >>"$scratch/odd"
        ;;
    esac
done <"$scratch/all"

record total files "$files"
record total directories "$directories"
record total links "$links"
record total special "$specials"
record total bytes "$bytes"

for suffix in "${!type_count[@]}"; do
    record type "$suffix" "${type_count[$suffix]}" "${type_bytes[$suffix]}"
done | sort -t $'\t' -k 4,4nr -k 2,2

sort -z -s -t / -k 1,1nr "$scratch/files" >"$scratch/by-size"
shown=0
while ((shown < top)) && IFS=/ read -r -d '' size path; do
    record largest "$size" "$path"
    shown=$((shown + 1))
done <"$scratch/by-size"

# Only files of equal size can be equal, so only those are read.
if [[ $duplicates == yes ]]; then
    while IFS=/ read -r -d '' size path; do
        if ((size > 0 && size_count[$size] > 1)); then printf '%s\0' "$root/$path"; fi
    done <"$scratch/by-size" >"$scratch/candidates"
    # With --zero names are never escaped, whatever they hold.
    xargs -0 -r sha256sum --zero -- <"$scratch/candidates" >"$scratch/sums" 2>>"$scratch/errors" || unreadable=1
    declare -A seen=() sum_count=()
    while IFS= read -r -d '' line; do
        sum=${line:0:64}
        sum_count[$sum]=$((${sum_count[$sum]-0} + 1))
    done <"$scratch/sums"
    group=0
    while IFS= read -r -d '' line; do
        sum=${line:0:64}
        ((sum_count[$sum] > 1)) || continue
        if [[ -z ${seen[$sum]-} ]]; then
            group=$((group + 1))
            seen[$sum]=$group
        fi
        path=${line:66}
        record duplicate "${seen[$sum]}" "$(stat -c %s -- "$path")" "${path#"$root"/}"
    done <"$scratch/sums" | sort -s -t $'\t' -k 2,2n
fi

cat "$scratch/odd"
if ((unreadable)); then
    sed 's/^/overview.sh: /' "$scratch/errors" >&2
    exit 1
fi
((findings == 0))
