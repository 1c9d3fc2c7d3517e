One entry decoded, its parts, and how two keys differ. Keys are abbreviated as a user would.

#collapse

  $ echo '{"schema": "cubinet.manifest/1", "shapes": [{"op": "fp8_gemm", "layer": "o_proj", "n": 7168, "k": 2048}]}' > m.json
  > cat > environment <<'END'
  > export CUBINET_NVRTC=$FAKE/libnvrtc_stub.so
  > warm() { cubinet warm --manifest m.json --arch sm_90a --policy reference --quiet "$@" > /dev/null; }
  > key() { cubinet --json --quiet ls | python3 -c 'import json, sys
  > print([e["key"] for e in json.load(sys.stdin)["entries"] if all(w in json.dumps(e) for w in sys.argv[1:])][0])' "$@"; }
  > END
  > . ./environment; warm
  $ . ./environment; cubinet show $(key vector) | sed '/^log:/q'
  key  <HASH1>
  op  fp8_quantize
  kernel  vector
  arch  sm_90a
  params  IN=bf16 SCALE=1 POW2=0 PROPAGATE=0 APPROX=0 PDL=1 VEC=16
  options  --gpu-architecture=sm_90a --std=c++17 -default-device --ptxas-options=-v
  source digest  <HASH2>
  compiler  13.0
  compile time  <MS>
  registers  40
  shared memory  <N> bytes, static
  spills  <N> bytes
  size  <SIZE>
  created  <TIME>
  last used  -
  hits  0
  pinned  no
  layer  0: <HOME>/.cache/cubinet
  log:
  $ . ./environment; cubinet show $(key vector) | sed '1,/^log:/d' | head -n 2
  ptxas info  : 0 bytes gmem
  ptxas info  : Compiling entry function 'cbn_fp8_quantize' for 'sm_90'
  $ . ./environment; cubinet --json show $(key vector | cut -c 1-8) | grep -v '"log"'
  {
    "schema": "cubinet.show/1",
    "key": "<HASH1>",
    "op": "fp8_quantize",
    "kernel": "vector",
    "arch": "sm_90a",
    "params": {
      "IN": 1,
      "SCALE": 1,
      "POW2": 0,
      "PROPAGATE": 0,
      "APPROX": 0,
      "PDL": 1,
      "VEC": 16
    },
    "size_bytes": <N>,
    "created": "<TIME>",
    "last_used": null,
    "hits": 0,
    "compile_ms": <N>,
    "compiler": "<NVRTC>",
    "source_digest": "<HASH2>",
    "registers": <N>,
    "shared_bytes": <N>,
    "spill_bytes": <N>,
    "layer": 0,
    "layer_path": "<HOME>/.cache/cubinet",
    "pinned": false,
    "options": "--gpu-architecture=sm_90a --std=c++17 -default-device --ptxas-options=-v",
    "other_compilers": []
  }
  $ . ./environment; cubinet --json show $(key vector) | python3 -c 'import json, sys; print(json.load(sys.stdin)["log"].count("ptxas") > 0)'
  True

Parts of it. The bytes are the ones that the compiler gave; the source is what it was given.

  $ . ./environment; cubinet show $(key vector) --resources
  registers  40
  shared memory  <N> bytes, static
  spills  <N> bytes
  $ . ./environment; cubinet show $(key vector) --cubin out.cubin && head -c 4 out.cubin | od -An -c
  > [ $(stat -c %s out.cubin) = $(cubinet --json show $(key vector) | sed -n 's/.*"size_bytes": \([0-9]*\),/\1/p') ] && echo same
   177  E  L  F
  same
  ! cubinet: out.cubin: 1288 bytes, cut by compiler 13.0
  $ . ./environment; cubinet show $(key vector) --cubin out2.cubin --quiet && cmp out.cubin out2.cubin && echo same
  same
  $ . ./environment; cubinet show $(key vector) --source | grep -c cbn_fp8_quantize
  1
  $ . ./environment; cubinet --json show $(key vector) --source | python3 -c 'import json, sys; print("cbn_fp8_quantize" in json.load(sys.stdin)["source"])'
  True

Two keys.

  $ . ./environment; cubinet show $(key swap_ab '"BM": 8') $(key swap_ab '"BM": 16')
  FIELD  <HASH3>  <HASH4>
  BM  8  16
  DEEP  1  0
  $ . ./environment; cubinet --json show $(key swap_ab '"BM": 8') $(key swap_ab '"BM": 16')
  {
    "schema": "cubinet.show/1",
    "keys": [
      "<HASH3>",
      "<HASH4>"
    ],
    "equal": false,
    "differences": [
      {
        "field": "BM",
        "values": [
          "8",
          "16"
        ]
      },
      {
        "field": "DEEP",
        "values": [
          "1",
          "0"
        ]
      }
    ]
  }
  $ . ./environment; cubinet show $(key vector) $(key swap_ab '"BM": 8') | tail -n +2 | cut -d ' ' -f 1
  op
  kernel
  IN
  SCALE
  APPROX
  OUT
  A_SCALE
  W_SCALE
  W_GRAN
  BIAS
  BM
  DEEP
  $ . ./environment; cubinet show $(key vector) $(key vector)
  the keys are equal: <HASH1>
  $ . ./environment; cubinet --json show $(key vector) $(key vector) | grep -A1 equal
    "equal": true,
    "differences": []

A key that is unknown or ambiguous (of twenty, two begin alike), no key.

  $ cubinet show ffffffffffffffffffffffffffffffff
  ! cubinet: show: no entry's key begins with <HASH5>; ls lists the keys
  [1]
  $ cubinet --json show ffffffffffffffffffffffffffffffff
  ! cubinet: show: no entry's key begins with <HASH5>; ls lists the keys
  [1]
  $ cubinet show xyz
  ! cubinet: show: key_prefix 'xyz' is not 1 to 32 hex digits
  [1]
  $ cubinet show 0123456789abcdef0123456789abcdef0
  ! cubinet: show: key_prefix '0123456789abcdef0123456789abcdef0' is not 1 to 32 hex digits
  [1]
  $ . ./environment; cubinet show $(key vector) ffffffffffffffffffffffffffffffff
  ! cubinet: show: no entry's key begins with <HASH5>; ls lists the keys
  [1]
  $ . ./environment; warm --cache many --arch sm_80,sm_86,sm_89,sm_100a,sm_120a; cubinet --cache many ls --quiet | wc -l
  > for at in 0 1 2 3 4 5 6 7 8 9 a b c d e f; do
  >   cubinet --cache many show $at > out 2> err; code=$?
  >   if grep -q ambiguous err; then echo "exit $code"; wc -c < out; break; fi
  > done
  21
  exit 1
  0
  $ cubinet show
  ! cubinet: show: give a KEY; 'cubinet ls' lists them
  [2]
  $ . ./environment; cubinet show $(key vector) $(key vector) --source
  ! cubinet: show: --cubin, --source and --resources take one KEY
  [2]
  $ . ./environment; cubinet show $(key vector) --cubin missing/out.cubin
  ! cubinet: show: cannot write missing/out.cubin: No such file or directory
  [1]
  $ . ./environment; cubinet show $(key vector) --cubin /dev/full
  ! cubinet: show: cannot write /dev/full: No space left on device; what it holds is no cubin
  [1]
  $ cubinet --cache missing show abc
  ! cubinet: show: --cache missing: No such file or directory
  [1]
