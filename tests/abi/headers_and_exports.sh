#!/usr/bin/env bash
# Public headers alone, as C11 -pedantic and as C++17; exported symbols against the map and the headers.
# usage: headers_and_exports.sh SOURCE_DIR LIBCUBINET.so
set -euo pipefail
source_dir=$1
library=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
note() { echo "FAIL: $*"; failed=$((failed + 1)); }

for header in "$source_dir"/include/cubinet/*.h; do
    name=$(basename "$header")
    printf '#include <cubinet/%s>\nint main(void) { return 0; }\n' "$name" >"$work/alone.c"
    cc -std=c11 -pedantic -Wall -Wextra -Wconversion -Werror -I"$source_dir/include" -fsyntax-only "$work/alone.c" ||
        note "$name alone as C11"
    c++ -std=c++17 -pedantic -Wall -Wextra -Werror -I"$source_dir/include" -x c++ -fsyntax-only "$work/alone.c" ||
        note "$name alone as C++17"
    if grep -nE '#include *[<"](cuda|nvrtc|lmdb|xxhash)' "$header"; then note "$name includes a foreign header"; fi
done

init=$source_dir/tests/abi/init_macros.c
{ cc -std=c11 -pedantic -Wall -Wextra -Wconversion -Werror -I"$source_dir/include" -o "$work/init_c" "$init" &&
    "$work/init_c"; } || note "INIT macros as C11"
{ c++ -std=c++17 -pedantic -Wall -Wextra -Werror -I"$source_dir/include" -x c++ -o "$work/init_cxx" "$init" &&
    "$work/init_cxx"; } || note "INIT macros as C++17"
grep -ohE '#define CBN_[A-Z0-9_]+_INIT\b' "$source_dir"/include/cubinet/*.h | sed 's/#define //' |
    grep -v CBN_TENSOR_INIT | while read -r macro; do grep -q "$macro)" "$init" || echo "$macro"; done >"$work/unlisted"
[ ! -s "$work/unlisted" ] || note "init_macros.c lacks $(tr '\n' ' ' <"$work/unlisted")"

nm -D --defined-only "$library" | awk '$2 != "A" {print $3}' | sed 's/@.*//' | sort >"$work/exported"
sed -n '/global:/,/local:/p' "$source_dir/include/cubinet/cubinet.map" | grep -oE 'cbn_[a-z0-9_]+' | sort >"$work/mapped"
cat "$source_dir"/include/cubinet/*.h | tr '\n' ' ' | grep -oE 'CBN_EXPORT[^;]*' | grep -oE '\bcbn_[a-z0-9_]+ *\(' |
    tr -d ' (' | sort -u >"$work/declared"
diff "$work/mapped" "$work/exported" || note "the library exports other symbols than the map lists"
diff "$work/mapped" "$work/declared" || note "the headers declare other functions than the map lists"
echo "$(wc -l <"$work/mapped") symbols, $failed failed"
[ "$failed" -eq 0 ]
