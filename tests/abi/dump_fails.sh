#!/usr/bin/env bash
# Proves that tools/dev/abi tells an addition from a break: records a small library of the public headers, then changes
# a copy of the headers in one way at a time.
# usage: dump_fails.sh SOURCE_DIR    exit 77 without abigail-tools
set -euo pipefail
source_dir=$1
abi=$source_dir/tools/dev/abi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
note() { echo "FAIL: $*"; failed=$((failed + 1)); }
command -v abidw >/dev/null && command -v abidiff >/dev/null || exit 77

mkdir -p "$work/tests/abi"
cat >"$work/probe.c" <<'PROBE'
#include <cubinet/cubinet.h>
int32_t cbn_fp8_gemm(struct cbn_runtime *runtime, const struct cbn_fp8_gemm_args *args, void *stream,
                     struct cbn_error *err)
{
    return runtime && args && stream && err;
}
int32_t cbn_explain(struct cbn_runtime *runtime, const struct cbn_query *query,
                    struct cbn_explanation *ret_explanation, struct cbn_error *err)
{
    return runtime && query && ret_explanation && err;
}
#ifndef WITHOUT
void cbn_plan_destroy(struct cbn_plan *plan)
{
    (void)plan;
}
#endif
#ifdef MORE
int32_t cbn_more(int32_t number);
int32_t cbn_more(int32_t number)
{
    return number;
}
#endif
PROBE

fresh() {
    rm -rf "$work/include"
    cp -r "$source_dir/include" "$work/include"
}
build() {
    cc -g -O0 -fPIC -shared "$@" -I"$work/include" -o "$work/libprobe.so" "$work/probe.c"
}
# expect 0|1 compare|update WHAT
expect() {
    local wanted=$1 mode=$2 what=$3 status=0
    local -a options=(--source "$work" --library "$work/libprobe.so")
    [ "$mode" = compare ] || options+=(--update)
    "$abi" "${options[@]}" >"$work/log" 2>&1 || status=$?
    [ "$status" -eq "$wanted" ] || { cat "$work/log"; note "$what: $mode gave $status in place of $wanted"; }
}
# change SED-EXPRESSION HEADER: it must take effect
change() {
    local before
    before=$(cksum <"$work/include/cubinet/$2")
    sed -i -E "$1" "$work/include/cubinet/$2"
    [ "$before" != "$(cksum <"$work/include/cubinet/$2")" ] || note "sed $1 changed nothing in $2"
}
# breaks WHAT [compiler options]: refused, by --update too
breaks() {
    local what=$1
    shift
    build "$@"
    expect 1 compare "$what"
    expect 1 update "$what"
    fresh
}

fresh
build
"$abi" --update --source "$work" --library "$work/libprobe.so" >/dev/null
expect 0 compare "nothing changed"
! grep -q "$work" "$work/tests/abi/cubinet.abi" || note "the dump holds an absolute path"
cp "$work/tests/abi/cubinet.abi" "$work/first.abi"
expect 0 update "nothing changed"
cmp "$work/first.abi" "$work/tests/abi/cubinet.abi" || note "two dumps of one library differ"

gemm='/^struct cbn_fp8_gemm_args \{/,/^\}/'
change "$gemm{/miss_policy;/d}" ops.h
breaks "a field removed"
change "$gemm{s/uint32_t max_sms;/uint32_t hold;/; s/uint32_t miss_policy;/uint32_t max_sms;/; s/uint32_t hold;/uint32_t miss_policy;/}" ops.h
breaks "two fields change places"
change "$gemm{s/uint64_t workspace;/int64_t workspace;/}" ops.h
breaks "a field of another type"
change "$gemm{s/^(.*uint64_t m_valid;.*)\$/    uint64_t inserted;\n\1/}" ops.h
breaks "a field in the middle"
change 's/uint32_t rank; /uint64_t rank; /' types.h
breaks "a frozen struct changed"
change 's/X\(7, NO_MEMORY/X(70, NO_MEMORY/' status.h
breaks "a status renumbered"
change 's/^#define CBN_OP_POW2 4u/#define CBN_OP_POW2 64u/' ops.h
breaks "a flag renumbered"
breaks "a function removed" -DWITHOUT

change "$gemm{s/^\};/    uint64_t appended;\n};/}" ops.h
change 's/X\(18, INTERNAL/X(19, LATER, "later") X(18, INTERNAL/' status.h
build -DMORE
expect 1 compare "additions that are not recorded"
expect 0 update "additions"
expect 0 compare "additions that are recorded"
fresh
breaks "additions taken back"

echo "$failed failed"
[ "$failed" -eq 0 ]
