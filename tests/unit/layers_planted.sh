#!/bin/sh
# tools/dev/layers must name each planted include by file and line, and pass the allowed ones.
# usage: layers_planted.sh SOURCE_DIR
set -u
layers=$1/tools/dev/layers
root=$(mktemp -d) || exit 1
trap 'rm -rf "$root"' EXIT
failed=0

# plant FILE LINE: a tree of one file, whose second line is LINE.
plant() {
    rm -rf "${root:?}"/*
    mkdir -p "$root/$(dirname "$1")"
    printf '/* head */\n%s\n' "$2" >"$root/$1"
}

refuse() {
    plant "$1" "$2"
    output=$("$layers" "$root")
    code=$?
    case $code:$output in
    "1:$1:2: "*) ;;
    *)
        echo "not refused: $1: $2 (exit $code): $output"
        failed=1
        ;;
    esac
}

allow() {
    plant "$1" "$2"
    if ! output=$("$layers" "$root"); then
        echo "refused: $1: $2: $output"
        failed=1
    fi
}

refuse runtime/model/bad.c '#include "driver/device.h"'
refuse runtime/base/bad.c '#include "jit/build.h"'
refuse cache/bad.h '#include "driver/device.h"'
refuse runtime/jit/bad.c '  #  include "dispatch/family.h"'
refuse runtime/driver/bad.c '#include <launch/kernel.h>'
refuse runtime/launch/bad.c '#include "cache/cabinet.h"'
refuse tools/cubinet/bad.c '#include "base/buf.h"'
refuse runtime/jit/bad.c '#include <lmdb.h>'
refuse runtime/jit/bad.c '#include <cuda.h>'
refuse runtime/jit/bad.c '#include "cuda.h"'
refuse runtime/launch/bad.c '#include <nvrtc.h>'
refuse runtime/base/bad.c '#include <xxhash.h>'
refuse runtime/base/bad.c '#include <jansson.h>'
refuse runtime/driver/bad.c '#include <cuda_runtime.h>'
refuse include/cubinet/bad.h '#include <stdio.h>'
refuse include/cubinet/bad.h '#include <cuda.h>'
refuse runtime/base/bad.c '#include "../jit/build.h"'
refuse runtime/base/bad.c '#include HEADER'
refuse runtime/base/bad.c '#include "nowhere/x.h"'
refuse runtime/new/bad.c '#include <stdio.h>'
refuse templates/bad.cuh '#include <cuda_fp8.h>'

allow runtime/model/good.c '#include <jansson.h>'
allow runtime/base/hash.c '#include <xxhash.h>'
allow cache/good.c '#include <lmdb.h>'
allow runtime/launch/good.c '#include <cuda.h>'
allow runtime/driver/good.c '#include <nvrtc.h>'
allow runtime/dispatch/good.c '#include "cache/cabinet.h"'
allow runtime/api/good.c '#include "model/shapes.h"'
allow tools/cubinet/good.c '#include <cubinet/model.h>'
allow include/cubinet/good.h '#include <stdint.h>'

rm -rf "${root:?}"/*
if "$layers" "$root" >/dev/null; then
    echo "an empty tree passes"
    failed=1
fi
exit $failed
