Marks that eviction and prune leave: by key, by request, at the warm.

#collapse

  $ echo '{"schema": "cubinet.manifest/1", "shapes": [{"op": "fp8_gemm", "layer": "o_proj", "n": 7168, "k": 2048}]}' > m.json
  > cat > environment <<'END'
  > export CUBINET_NVRTC=$FAKE/libnvrtc_stub.so
  > request="--manifest m.json --arch sm_90a --policy reference"
  > warm() { cubinet warm $request --quiet "$@" > /dev/null; }
  > keys() { cubinet --json --quiet ls "$@" | python3 -c 'import json, sys
  > for entry in json.load(sys.stdin)["entries"]: print(entry["key"])'; }
  > pinned() { cubinet --json --quiet ls | grep -c '"pinned": true'; }
  > END
  > . ./environment; warm; pinned
  0
  [1]
  $ . ./environment; cubinet pin $(keys --op fp8_quantize); pinned
  pinned: <HASH1>
  1
  $ . ./environment; cubinet ls --op fp8_quantize --quiet
  KEY  OP  KERNEL  ARCH  SIZE  CREATED  USED  HITS  COMPILE  COMPILER  LAYER  PIN  PARAMS
  <HASH1>  fp8_quantize  vector  sm_90a  <SIZE>  <TIME>  -  0  <MS>  <NVRTC>  0  pinned  IN=bf16 SCALE=1 POW2=0 PROPAGATE=0 APPROX=0 PDL=1 VEC=16
  $ . ./environment; cubinet --json pin $(keys --op fp8_quantize | cut -c 1-12)
  {
    "schema": "cubinet.pin/1",
    "pinned": [
      "<HASH1>"
    ],
    "in_bases": []
  }
  $ . ./environment; cubinet show $(keys --op fp8_quantize) | grep pinned
  pinned  yes
  $ . ./environment; cubinet unpin $(keys --op fp8_quantize); pinned
  unpinned: <HASH1>
  0
  [1]
  $ . ./environment; cubinet --json unpin $(keys --op fp8_quantize)
  {
    "schema": "cubinet.unpin/1",
    "pinned": [],
    "unpinned": [
      "<HASH1>"
    ],
    "in_bases": []
  }

By request. What the cache lacks is told, and makes a pin incomplete; an unpin has nothing to do there.

  $ . ./environment; cubinet pin $request; pinned
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=reference
  request: arch=sm_90a m=0..131072
  pinned: <HASH2> fp8_gemm/swap_ab sm_90a IN=4 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 POW2=0 PROPAGATE=0 PDL=1 VEC=16 BM=16 DEEP=0
  pinned: <HASH3> fp8_gemm/swap_ab sm_90a IN=4 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 POW2=0 PROPAGATE=0 PDL=1 VEC=16 BM=24 DEEP=1
  pinned: <HASH4> fp8_gemm/swap_ab sm_90a IN=4 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 POW2=0 PROPAGATE=0 PDL=1 VEC=16 BM=32 DEEP=1
  pinned: <HASH5> fp8_gemm/swap_ab sm_90a IN=4 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 POW2=0 PROPAGATE=0 PDL=1 VEC=16 BM=8 DEEP=1
  pinned: <HASH6> fp8_gemm/wgmma sm_90a IN=4 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 PDL=1 VEC=16 BM=128 BN=128 WARPGROUPS=2 ALONG_K=0 PARTS=1 SPLIT=1 RESIDENT=1 ORDER=0 TRIGGER=0
  pinned: <HASH7> fp8_gemm/wgmma sm_90a IN=4 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 PDL=1 VEC=16 BM=128 BN=128 WARPGROUPS=2 ALONG_K=0 PARTS=2 SPLIT=1 RESIDENT=1 ORDER=1 TRIGGER=0
  pinned: <HASH8> fp8_gemm/wgmma sm_90a IN=4 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 PDL=1 VEC=16 BM=128 BN=160 WARPGROUPS=2 ALONG_K=0 PARTS=1 SPLIT=1 RESIDENT=1 ORDER=1 TRIGGER=0
  pinned: <HASH9> fp8_gemm/wgmma sm_90a IN=4 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 PDL=1 VEC=16 BM=128 BN=192 WARPGROUPS=2 ALONG_K=0 PARTS=1 SPLIT=1 RESIDENT=1 ORDER=1 TRIGGER=0
  pinned: <HASH10> fp8_gemm/wgmma sm_90a IN=4 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 PDL=1 VEC=16 BM=128 BN=64 WARPGROUPS=2 ALONG_K=0 PARTS=1 SPLIT=1 RESIDENT=1 ORDER=1 TRIGGER=0
  pinned: <HASH11> fp8_gemm/wgmma sm_90a IN=4 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 PDL=1 VEC=16 BM=256 BN=128 WARPGROUPS=2 ALONG_K=0 PARTS=1 SPLIT=1 RESIDENT=1 ORDER=0 TRIGGER=0
  pinned: <HASH1> fp8_quantize/vector sm_90a IN=1 SCALE=1 POW2=0 PROPAGATE=0 APPROX=0 PDL=1 VEC=16
  pinned 11, in bases 0, missing 0, uncovered 0
  11
  $ . ./environment; cubinet unpin $request --ops fp8_quantize --json | python3 -c 'import json, sys
  > answer = json.load(sys.stdin); print(answer["schema"], answer["pinned"], len(answer["unpinned"]), answer["missing"])'; pinned
  cubinet.unpin/1 [] 1 []
  10

The quantiser that a product launches first is the product's too.

  $ . ./environment; cubinet unpin $request --ops fp8_gemm --json | python3 -c 'import json, sys
  > answer = json.load(sys.stdin); print(answer["schema"], answer["pinned"], len(answer["unpinned"]), answer["missing"])'; pinned
  cubinet.unpin/1 [] 11 []
  0
  [1]
  $ . ./environment; cubinet pin $request --arch sm_90a,sm_80 --ops fp8_quantize
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=reference
  request: arch=sm_90a,sm_80 m=0..131072 ops=fp8_quantize
  pinned: <HASH1> fp8_quantize/vector sm_90a IN=1 SCALE=1 POW2=0 PROPAGATE=0 APPROX=0 PDL=1 VEC=16
  pinned 1, in bases 0, missing 1, uncovered 0
  missing: fp8_quantize/vector sm_80 IN=1 SCALE=1 POW2=0 PROPAGATE=0 APPROX=0 PDL=0 VEC=16
  [3]
  $ . ./environment; cubinet unpin $request --arch sm_80 --ops fp8_quantize --json | tail -n 7; pinned
      "ops": "fp8_quantize"
    },
    "missing": [
      "fp8_quantize/vector sm_80 IN=1 SCALE=1 POW2=0 PROPAGATE=0 APPROX=0 PDL=0 VEC=16"
    ],
    "uncovered": []
  }
  1
  $ . ./environment; cubinet pin --manifest m.json --arch sm_100a --policy reference --ops fp8_einsum; echo "exit $?"
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=reference
  request: arch=sm_100a m=0..131072 ops=fp8_einsum
  pinned 0, in bases 0, missing 0, uncovered 0
  exit 0
  ! cubinet: nothing is requested: no FP8 layer uses fp8_einsum
  $ . ./environment; warm --pin; pinned
  11
  $ . ./environment; warm --cache fresh --pin; cubinet --cache fresh --json --quiet ls | grep -c '"pinned": true'
  11
  $ . ./environment; cubinet warm $request --ops fp8_quantize --pin
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=reference
  request: arch=sm_90a m=0..131072 ops=fp8_quantize
  requested 1, already 1, compiled 0, failed 0, uncovered 0, <S> s
  pinned 1, in bases 0
  $ . ./environment; cubinet warm $request --ops fp8_quantize --pin --json | tail -n 6
    "uncovered": [],
    "pinned": [
      "<HASH1>"
    ],
    "in_bases": []
  }

Entries of a base need no mark; with nothing to write to, nothing can be marked.

  $ . ./environment; warm --cache base && chmod -R a-w base
  > cubinet --cache overlay --base $PWD/base warm $request --ops fp8_quantize --pin --quiet
  > cubinet --cache overlay --base $PWD/base pin $request --ops fp8_quantize
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=reference
  request: arch=sm_90a m=0..131072 ops=fp8_quantize
  requested 1, already 1, compiled 0, failed 0, uncovered 0, <S> s
  pinned 0, in bases 1
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=reference
  request: arch=sm_90a m=0..131072 ops=fp8_quantize
  in a base, which needs no pin: <HASH1> fp8_quantize/vector sm_90a IN=1 SCALE=1 POW2=0 PROPAGATE=0 APPROX=0 PDL=1 VEC=16
  pinned 0, in bases 1, missing 0, uncovered 0
  $ . ./environment; cubinet --cache overlay --base $PWD/base pin $(keys --cache $PWD/base --op fp8_quantize)
  in a base, which needs no pin: <HASH1>
  $ . ./environment
  > obey() { if [ "$(id -u)" = 0 ]; then setpriv --bounding-set=-dac_override,-dac_read_search "$@"; else "$@"; fi; }
  > obey cubinet --cache base pin $request --ops fp8_quantize
  ! cubinet: the cache folder base cannot be written by this user: it is read only, new kernels are not kept
  ! cubinet: pin: no layer of the cache can be written: nothing can be marked
  [1]

Keys that are unknown or missing; both forms at once.

  $ . ./environment; cubinet pin ffffffffffffffffffffffffffffffff $(keys --op fp8_quantize); echo "exit $?"; pinned
  pinned: <HASH1>
  exit 1
  11
  ! cubinet: pin: no entry's key begins with <HASH12>; ls lists the keys
  $ cubinet pin xyz
  ! cubinet: pin: key_prefix 'xyz' is not 1 to 32 hex digits
  [1]
  $ cubinet pin
  ! cubinet: pin: give either KEYs or one of --model, --manifest and --all
  [2]
  $ . ./environment; cubinet pin $request abc
  ! cubinet: pin: give either KEYs or one of --model, --manifest and --all
  [2]
  $ cubinet unpin abc --tp 8
  ! cubinet: unpin: --tp, --ep, --arch, --ops and --max-m go with --model, --manifest or --all
  [2]
  $ cubinet pin --all
  ! cubinet: pin: --arch is missing
  [2]
  $ cubinet --cache missing pin abc
  ! cubinet: pin: --cache missing: No such file or directory
  [1]
