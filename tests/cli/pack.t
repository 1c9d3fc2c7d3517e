Packs: one file for deployment.

  $ echo '{"schema": "cubinet.manifest/1", "shapes": [{"op": "fp8_gemm", "layer": "o_proj", "n": 7168, "k": 2048}]}' > m.json
  > cat > environment <<'END'
  > export CUBINET_NVRTC=$FAKE/libnvrtc_stub.so REQUEST="--manifest m.json --arch sm_90a"
  > quietly() { "$@" --quiet > /dev/null; }
  > END
  > . ./environment; quietly cubinet --cache one warm $REQUEST; quietly cubinet --cache one warm $REQUEST --arch sm_80

Everything that is there, or what is selected of it.

  $ cubinet --cache one pack p; cubinet --cache one pack --json q | sed 's/"q"/"p"/'; cmp p q && echo same; sha256sum p | cut -d' ' -f1
  entries 18, bytes <N>
  sha256 <SHA256>
  {
    "schema": "cubinet.pack/1",
    "file": "p",
    "entries": 18,
    "bytes": <N>,
    "damaged": 0,
    "digest": "<SHA256>",
    "missing": [],
    "uncovered": []
  }
  same
  <SHA256>
  $ cubinet --cache one pack quantize --op fp8_quantize; cubinet --cache one pack sm_80 --arch sm_80 | head -n 1
  entries 2, bytes <N>
  sha256 <SHA256>
  entries 4, bytes <N>
  $ cubinet --cache one pack wide --kernel generic --arch sm_90a | head -n 1; cubinet --cache one pack none --kernel tcgen05; ls none
  ! cubinet: pack: nothing was packed: no entry is selected
  ! cubinet: pack: nothing was packed: no entry is selected
  ! ls: cannot access 'none': No such file or directory
  [2]

A request is packed whole or not at all.

  $ . ./environment; cubinet --cache one pack model $REQUEST; cubinet --cache one pack model $REQUEST --pow2; echo "exit $?"
  entries 14, bytes <N>
  sha256 <SHA256>
  missing: fp8_gemm/swap_ab_fused sm_90a IN=1 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 POW2=1 PROPAGATE=0 PDL=1 VEC=16 BM=8 DEEP=0
  missing: fp8_quantize/vector sm_90a IN=1 SCALE=1 POW2=1 PROPAGATE=0 APPROX=0 PDL=1 VEC=16
  exit 3
  ! cubinet: pack: the cache lacks 2 of what is requested, and nothing was packed; run: cubinet warm --cache one --manifest m.json --arch sm_90a --pow2
  $ . ./environment; cubinet --cache one pack more $REQUEST --bias out --out fp16 --json; echo "exit $?"; ls more
  {
    "schema": "cubinet.pack/1",
    "file": null,
    "entries": 0,
    "missing": [
      "fp8_gemm/swap_ab sm_90a IN=4 OUT=2 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=1 POW2=0 PROPAGATE=0 PDL=1 VEC=16 BM=16 DEEP=0",
      "fp8_gemm/swap_ab sm_90a IN=4 OUT=2 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=1 POW2=0 PROPAGATE=0 PDL=1 VEC=16 BM=24 DEEP=1",
      "fp8_gemm/swap_ab sm_90a IN=4 OUT=2 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=1 POW2=0 PROPAGATE=0 PDL=1 VEC=16 BM=32 DEEP=1",
      "fp8_gemm/swap_ab sm_90a IN=4 OUT=2 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=1 POW2=0 PROPAGATE=0 PDL=1 VEC=16 BM=48 DEEP=0",
      "fp8_gemm/swap_ab sm_90a IN=4 OUT=2 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=1 POW2=0 PROPAGATE=0 PDL=1 VEC=16 BM=64 DEEP=0",
      "fp8_gemm/swap_ab sm_90a IN=4 OUT=2 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=1 POW2=0 PROPAGATE=0 PDL=1 VEC=16 BM=8 DEEP=1",
      "fp8_gemm/swap_ab_fused sm_90a IN=1 OUT=2 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=1 POW2=0 PROPAGATE=0 PDL=1 VEC=16 BM=8 DEEP=0",
      "fp8_gemm/wgmma sm_90a IN=4 OUT=2 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=1 PDL=1 VEC=16 BM=128 BN=128 WARPGROUPS=2 ALONG_K=0 PARTS=1 SPLIT=1 RESIDENT=1 ORDER=0 TRIGGER=0",
      "fp8_gemm/wgmma sm_90a IN=4 OUT=2 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=1 PDL=1 VEC=16 BM=128 BN=160 WARPGROUPS=2 ALONG_K=0 PARTS=1 SPLIT=1 RESIDENT=1 ORDER=1 TRIGGER=0",
      "fp8_gemm/wgmma sm_90a IN=4 OUT=2 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=1 PDL=1 VEC=16 BM=128 BN=192 WARPGROUPS=2 ALONG_K=0 PARTS=1 SPLIT=1 RESIDENT=1 ORDER=1 TRIGGER=0",
      "fp8_gemm/wgmma sm_90a IN=4 OUT=2 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=1 PDL=1 VEC=16 BM=128 BN=64 WARPGROUPS=2 ALONG_K=0 PARTS=1 SPLIT=1 RESIDENT=1 ORDER=1 TRIGGER=0"
    ],
    "uncovered": [],
    "warm": "cubinet warm --cache one --manifest m.json --arch sm_90a --out fp16 --bias out"
  }
  exit 3
  ! cubinet: pack: the cache lacks 11 of what is requested, and nothing was packed; run: cubinet warm --cache one --manifest m.json --arch sm_90a --out fp16 --bias out
  ! ls: cannot access 'more': No such file or directory
  [2]
  $ . ./environment; cubinet --cache one pack more --all --ops fp8_einsum --arch sm_90a; echo "exit $?"
  uncovered: fp8_einsum: fp8_einsum has no kernel in this release
  exit 3
  ! cubinet: pack: 1 of what is requested has no kernel, and nothing was packed; limit the request with --ops
  $ . ./environment; CUBINET_CACHE=none cubinet pack more $REQUEST 2>&1 >/dev/null | tail -n 1; ls none; cubinet --cache none pack more
  cubinet: pack: the cache lacks 14 of what is requested, and nothing was packed; run: cubinet warm --manifest m.json --arch sm_90a
  ! ls: cannot access 'none': No such file or directory
  ! cubinet: pack: --cache none: No such file or directory
  [1]

Unpacked it is the same again, as a stream, too.

  $ cubinet --cache two unpack p; cubinet --cache two unpack p --json; cubinet --cache two pack - > r; cmp p r && echo same
  entries 18, stored 18, already 0, bytes <N>
  sha256 <SHA256>
  {
    "schema": "cubinet.unpack/1",
    "file": "p",
    "entries": 18,
    "stored": 0,
    "already": 18,
    "bytes": <N>,
    "digest": "<SHA256>"
  }
  same
  ! entries 18, bytes <N>
  ! sha256 <SHA256>
  $ cat p | cubinet --cache three unpack - --expect-digest sha256:$(sha256sum p | cut -d' ' -f1)
  entries 18, stored 18, already 0, bytes <N>
  sha256 <SHA256>
  $ cubinet --cache one pack - | cubinet --cache four unpack - | head -n 1; cubinet --cache four pack - --quiet | cmp - p && echo same
  entries 18, stored 18, already 0, bytes <N>
  same
  ! entries 18, bytes <N>
  ! sha256 <SHA256>

Cut, altered, or another than expected: nothing is taken.

  $ cubinet --cache five unpack p --expect-digest $(sha256sum q m.json | tail -n 1 | cut -d' ' -f1); echo "exit $?"
  > head -c -1 p > cut; cubinet --cache five unpack cut; echo "exit $?"
  > printf 'x' | dd of=q bs=1 seek=5000 conv=notrunc status=none; cubinet --cache five unpack q; echo "exit $?"
  > head -c 3000 p | cubinet --cache five unpack -; echo "exit $?"; cubinet --cache five unpack m.json; echo "exit $?"
  > cubinet --cache five unpack - < /dev/null; echo "exit $?"; cubinet --cache five ls --quiet | tail -n +2
  exit 3
  exit 3
  exit 3
  exit 3
  exit 3
  exit 3
  ! cubinet: unpack: p is a whole pack, and not the one expected: its SHA-256 is <SHA256>
  ! cubinet: unpack: cut is no whole pack: its end does not fit its length, so it was cut or written to; fetch it again or pack anew
  ! cubinet: unpack: entry <HASH1> of q is damaged: the seal does not match; fetch it again or pack anew
  ! cubinet: unpack: the stream is no whole pack: its end does not fit its length, so it was cut or written to; fetch it again or pack anew
  ! cubinet: unpack: m.json is no pack: it does not begin as one; name a file that pack wrote
  ! cubinet: unpack: the stream is no whole pack: it ends too early; fetch it again or pack anew

In place, as a base.

  $ . ./environment; rm -rf none; export CUBINET_CACHE=$PWD/none
  > cubinet --base p check $REQUEST | tail -n 1; CUBINET_BASES=$PWD/p cubinet check $REQUEST --arch sm_80,sm_90a | tail -n 1
  > ls none; cubinet --base p verify; cubinet --base p stats | head -n 6; cubinet --base p --base p ls
  requested 14, present 14, missing 0, uncovered 0
  requested 18, present 18, missing 0, uncovered 0
  checked 18, damaged 0, repaired 0
  0: p, base
    entries     18        entries
    pinned      0         entries that eviction leaves
    used_bytes  <SIZE>  bytes of pages in use
    file_bytes  <SIZE>  bytes allocated on disk
  ! ls: cannot access 'none': No such file or directory
  ! cubinet: ls: the base p is the same folder as the base p; name each once
  [2]
  $ cubinet --cache one --base q verify; echo "exit $?"; cubinet --cache none --base cut check --manifest m.json --arch sm_90a | tail -n 1
  damaged: <HASH1> in q: the seal does not match
  checked 36, damaged 1, repaired 0
  exit 3
  missing: fp8_quantize/vector sm_90a IN=1 SCALE=1 POW2=0 PROPAGATE=0 APPROX=0 PDL=1 VEC=16
  ! cubinet: a cache layer is left out: cut is no whole pack: its end does not fit its length, so it was cut or written to; fetch it again or pack anew
  $ cubinet --cache none --base p doctor | grep -A1 -E 'base|layer'; cubinet --cache none --base cut doctor | grep -A1 base
  ok      base-pack: p: a pack of 18 entries, read in place
  ok      layer: 0: none, writable overlay, 0 entries, <N> bytes
  ok      layer: 1: p, read-only base, 18 entries, <N> bytes
  failed  base-pack: cut is no whole pack: its end does not fit its length, so it was cut or written to; fetch it again or pack anew
          mend: fetch it again, or pack it anew with this release
  ! cubinet: a cache layer is left out: cut is no whole pack: its end does not fit its length, so it was cut or written to; fetch it again or pack anew

Usage.

  $ cubinet pack; cubinet pack a b; cubinet unpack; cubinet pack a --tp 2; cubinet pack a --model x --op fp8_gemm; cubinet pack - --json > /dev/null
  ! cubinet: pack: give the file's name OUT, or - for standard output
  ! cubinet: pack: unexpected argument 'b'
  ! cubinet: unpack: give the file's name IN, or - for standard input
  ! cubinet: pack: --tp, --ep, --ops and --max-m go with --model, --manifest or --all
  ! cubinet: pack: --op and --kernel select from what is there; limit a request with --ops
  ! cubinet: pack: --json goes with a file: standard output is the pack's
  [2]
  $ cubinet pack a --arch sm_80,sm_90a; cubinet unpack p --expect-digest abc; cubinet unpack nowhere; cubinet pack .; cubinet --cache one pack no/where
  ! cubinet: pack: --arch 'sm_80,sm_90a' is a list; pack takes one architecture
  ! cubinet: unpack: expect_digest 'abc' is no SHA-256 in 64 hex digits
  ! cubinet: unpack: cannot open nowhere: No such file or directory
  ! cubinet: pack: . is a folder; name a file
  ! cubinet: pack: cannot make no/where: No such file or directory
  [1]
  $ cubinet --cache one pack /dev/full; echo "exit $?"; cubinet --cache one pack - > /dev/full; echo "exit $?"
  exit 1
  exit 1
  ! cubinet: pack: cannot write the pack: No space left on device
  ! cubinet: pack: cannot write the pack: No space left on device

The command that it names is one for a shell.

  $ . ./environment; mkdir 'it'"'"'s a folder'; cp m.json "it's a folder"; CUBINET_CACHE=none cubinet pack p --manifest "it's a folder/m.json" --arch sm_90a --max-m 64 --no-pdl --scale-gran row 2>&1 >/dev/null | tail -n 1
  cubinet: pack: the cache lacks 8 of what is requested, and nothing was packed; run: cubinet warm --manifest 'it'\''s a folder/m.json' --max-m 64 --arch sm_90a --scale-gran row --no-pdl
