The recipes of the README, as they stand there, with the NVRTC stand-in.

  $ cat > environment <<'END'
  > export CUBINET_NVRTC=$FAKE/libnvrtc_stub.so FLEET=$TOOLS/examples/fleet CONFIG=$MODELS/DeepSeek-V3.json
  > END
  > . ./environment; "$FLEET"/bake "$CONFIG" 8 sm_90a baked 2> told | tail -n 2; grep -c compiled: told; ls baked; cat baked/request
  entries 24, bytes <N>
  sha256 <SHA256>
  24
  config.json
  kernels.pack
  kernels.pack.sha256
  request
  --tp 8 --arch sm_90a --ops fp8_gemm,fp8_quantize

Baked anew under a narrow umask, from a config that only its owner reads: everybody may read all of it.

  $ . ./environment; cp "$CONFIG" own.json; chmod 0400 own.json; umask 077
  > for i in 1 2; do "$FLEET"/bake own.json 8 sm_90a again 2> told | tail -n 1; done; cmp baked/kernels.pack again/kernels.pack; stat -c '%a %n' again again/*
  sha256 <SHA256>
  sha256 <SHA256>
  755 again
  644 again/config.json
  444 again/kernels.pack
  644 again/kernels.pack.sha256
  644 again/request

Proven where nothing can be written and nothing compiles: no NVRTC, no HOME, a pack for reading only.

  $ . ./environment; export CUBINET_NVRTC=/nonexistent; "$FLEET"/prove baked; echo "exit $?"; ls .cache /nonexistent
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default
  request: arch=sm_90a m=0..131072 ops=fp8_gemm,fp8_quantize
  requested 24, present 24, missing 0, uncovered 0
  exit 0
  ! ls: cannot access '.cache': No such file or directory
  ! ls: cannot access '/nonexistent': No such file or directory
  [2]
  $ . ./environment; cp -r baked other; sed -i 's/--tp 8/--tp 8 --pow2/' other/request; "$FLEET"/prove other | tail -n 3; chmod u+w other/kernels.pack; echo >> other/kernels.pack; "$FLEET"/prove other; echo "exit $?"
  requested 24, present 22, missing 2, uncovered 0
  missing: fp8_gemm/swap_ab_fused sm_90a IN=1 OUT=1 A_SCALE=1 W_SCALE=1 W_GRAN=1 BIAS=0 POW2=1 PROPAGATE=0 PDL=1 VEC=16 BM=8 DEEP=0
  missing: fp8_quantize/vector sm_90a IN=1 SCALE=1 POW2=1 PROPAGATE=0 APPROX=0 PDL=1 VEC=16
  kernels.pack: FAILED
  exit 1
  ! sha256sum: WARNING: 1 computed checksum did NOT match

A base on a share, below an overlay of one's own: what the base holds is not copied, what it lacks is built into the overlay.

  $ . ./environment; export CUBINET_BASES=$PWD/baked/kernels.pack CUBINET_CACHE=$PWD/overlay
  > set -- --model "$CONFIG" --arch sm_90a --ops fp8_gemm,fp8_quantize --quiet
  > cubinet warm "$@" --tp 8 | tail -n 1; cubinet --json ls --quiet | grep '"layer"' | sort | uniq -c
  > cubinet warm "$@" --tp 8 --pow2 | tail -n 1; cubinet check "$@" --tp 8 --pow2 | tail -n 1; ls baked
  requested 24, already 24, compiled 0, failed 0, uncovered 0, <S> s
       24       "layer": 1,
  requested 24, already 22, compiled 2, failed 0, uncovered 0, <S> s
  requested 24, present 24, missing 0, uncovered 0
  config.json
  kernels.pack
  kernels.pack.sha256
  request

Handed on as a file whose digest is known; another one is not taken.

  $ . ./environment; digest=$(cut -d' ' -f1 baked/kernels.pack.sha256); cubinet --cache node unpack baked/kernels.pack --expect-digest $digest
  > cubinet --cache node unpack other/kernels.pack --expect-digest $digest; echo "exit $?"
  entries 24, stored 24, already 0, bytes <N>
  sha256 <SHA256>
  exit 3
  ! cubinet: unpack: other/kernels.pack is no whole pack: its end does not fit its length, so it was cut or written to; fetch it again or pack anew
  $ CUBINET_CACHE=$PWD/none cubinet --base baked/kernels.pack pack - --quiet | cubinet --cache far unpack - | head -n 1
  entries 24, stored 24, already 0, bytes <N>

Usage.

  $ . ./environment; "$FLEET"/bake; "$FLEET"/prove
  ! usage: bake CONFIG.json TP ARCH FOLDER
  ! usage: prove FOLDER
  [2]
