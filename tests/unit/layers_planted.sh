#!/bin/sh
# tools/dev/layers must name each planted include by file and line, and pass the allowed ones.
# usage: layers_planted.sh SOURCE_DIR
set -u
layers=$1/tools/dev/layers
root=$(mktemp -d) || exit 1
trap 'rm -rf "$root"' EXIT
failed=0

count=0

# A file of its own for each case; the include stands in its second line. N in FILE becomes the number of the case.
plant() {
    count=$((count + 1))
    file=$(printf '%s' "$2" | sed "s/N/$count/")
    mkdir -p "$root/$1/$(dirname "$file")"
    printf '/* head */\n%s\n' "$3" >"$root/$1/$file"
    printf '%s:2: \n' "$file" >>"$root/$1.files"
}

refuse() {
    plant refuse "$1" "$2"
}

allow() {
    plant allow "$1" "$2"
}

refuse runtime/model/badN.c '#include "driver/device.h"'
refuse runtime/base/badN.c '#include "jit/build.h"'
refuse cache/badN.h '#include "driver/device.h"'
refuse runtime/jit/badN.c '  #  include "dispatch/family.h"'
refuse runtime/driver/badN.c '#include <launch/kernel.h>'
refuse runtime/launch/badN.c '#include "cache/cabinet.h"'
refuse tools/cubinet/badN.c '#include "base/buf.h"'
refuse runtime/jit/badN.c '#include <lmdb.h>'
refuse runtime/jit/badN.c '#include <cuda.h>'
refuse runtime/jit/badN.c '#include "cuda.h"'
refuse runtime/launch/badN.c '#include <nvrtc.h>'
refuse runtime/base/badN.c '#include <xxhash.h>'
refuse runtime/base/badN.c '#include <jansson.h>'
refuse runtime/driver/badN.c '#include <cuda_runtime.h>'
refuse include/cubinet/badN.h '#include <stdio.h>'
refuse include/cubinet/badN.h '#include <cuda.h>'
refuse runtime/base/badN.c '#include "../jit/build.h"'
refuse runtime/base/badN.c '#include HEADER'
refuse runtime/base/badN.c '#include "nowhere/x.h"'
refuse runtime/new/badN.c '#include <stdio.h>'
refuse templates/badN.cuh '#include <cuda_fp8.h>'

allow runtime/model/goodN.c '#include <jansson.h>'
allow runtime/base/hash.c '#include <xxhash.h>'
allow cache/goodN.c '#include <lmdb.h>'
allow runtime/launch/goodN.c '#include <cuda.h>'
allow runtime/driver/goodN.c '#include <nvrtc.h>'
allow runtime/dispatch/goodN.c '#include "cache/cabinet.h"'
allow runtime/api/goodN.c '#include "model/shapes.h"'
allow tools/cubinet/goodN.c '#include <cubinet/model.h>'
allow include/cubinet/goodN.h '#include <stdint.h>'

"$layers" "$root/refuse" >"$root/refuse.output"
code=$?
if [ $code -ne 1 ]; then
    echo "exit $code with planted edges"
    failed=1
fi
while read -r place; do
    if ! grep -qF "$place" "$root/refuse.output"; then
        echo "not refused: $place $(sed -n 2p "$root/refuse/${place%%:*}")"
        failed=1
    fi
done <"$root/refuse.files"

if ! "$layers" "$root/allow"; then
    echo "refused what is allowed"
    failed=1
fi

mkdir "$root/empty"
if "$layers" "$root/empty" >"$root/empty.output"; then
    echo "an empty tree passes"
    failed=1
fi
exit $failed
