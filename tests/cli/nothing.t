A machine with no toolkit, no driver and no NVRTC: every verb that inspects works on a cache that came from elsewhere.

  $ echo '{"schema": "cubinet.manifest/1", "shapes": [{"op": "fp8_quantize", "layer": "x", "n": 1, "k": 128}]}' > m.json
  > CUBINET_NVRTC=$FAKE/libnvrtc_stub.so cubinet warm --manifest m.json --arch sm_90a --quiet > text && chmod -R a-w ~/.cache/cubinet
  $ cat > environment <<'END'
  > export CUBINET_NVRTC=/nonexistent/libnvrtc.so CUBINET_CUDA=/nonexistent/libcuda.so.1
  > tell() { "$@" > out 2> err; echo "$? $(wc -l < err) ${*:2:1}"; }
  > END
  $ . ./environment; key=$(cubinet ls --quiet | tail -n 1 | cut -d ' ' -f 1); tell cubinet ls; tell cubinet show $key
  > tell cubinet stats; tell cubinet verify; tell cubinet config; tell cubinet version; tell cubinet help
  > tell cubinet check --manifest m.json --arch sm_90a; tell cubinet matrix --op fp8_gemm --m 8 --n 2112 --k 7168 --arch sm_90a
  > tell cubinet explain --op fp8_quantize --t 1 --k 128 --arch sm_90a; tell cubinet shapes --model $MODELS/DeepSeek-V3.json --tp 8
  0 1 ls
  0 0 show
  0 0 stats
  0 0 verify
  0 0 config
  0 0 version
  0 0 help
  0 0 check
  0 0 matrix
  0 0 explain
  0 0 shapes

What is there is served; what is not says where a compiler was looked for. doctor names both absences with their mends.

  $ . ./environment; cubinet warm --manifest m.json --arch sm_90a --quiet | tail -n 1
  requested 1, already 1, compiled 0, failed 0, uncovered 0, <S> s
  $ . ./environment; cubinet warm --manifest m.json --arch sm_89 --cache other
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default
  request: arch=sm_89 m=0..131072
  requested 1, already 0, compiled 0, failed 1, uncovered 0, <S> s
  ! cubinet: warm: no NVRTC at /nonexistent/libnvrtc.so (CUBINET_NVRTC): no such library; give the path of a libnvrtc.so file, or none to search
  [1]
  $ . ./environment; cubinet selftest
  ! cubinet: selftest: no CUDA driver at /nonexistent/libcuda.so.1 (CUBINET_CUDA): no such library; give the path of a libcuda.so.1, or none to search
  [1]
  $ . ./environment; cubinet doctor | grep -E 'nvrtc|driver'
  absent  driver: no CUDA driver at /nonexistent/libcuda.so.1 (CUBINET_CUDA): no such library; give the path of a libcuda.so.1, or none to search
          mend: nothing is needed to warm a cache; to launch, install an NVIDIA driver of 12.4 or newer, or name its libcuda.so.1 in CUBINET_CUDA
  failed  nvrtc: no NVRTC at /nonexistent/libnvrtc.so (CUBINET_NVRTC): no such library; give the path of a libnvrtc.so file, or none to search
          mend: install libnvrtc of CUDA 12 or 13 (the PyPI wheel nvidia-cuda-nvrtc will do), or name it in CUBINET_NVRTC; a cache that is warm needs none
