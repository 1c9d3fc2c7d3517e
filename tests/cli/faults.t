What goes wrong where the cache lies. Damage first: one byte of a stored cubin is flipped.

#collapse

  $ echo '{"schema": "cubinet.manifest/1", "shapes": [{"op": "fp8_quantize", "layer": "x", "n": 1, "k": 128}]}' > m.json
  > cat > environment <<'END'
  > export CUBINET_NVRTC=$FAKE/libnvrtc_stub.so FAKE_NVRTC_COUNT=count
  > warm() { cubinet warm --manifest m.json --arch sm_90a "$@"; }
  > END
  > . ./environment; warm --quiet
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default
  request: arch=sm_90a m=0..131072
  requested 1, already 0, compiled 1, failed 0, uncovered 0, <S> s
  $ python3 - <<'END'
  > import glob, os
  > path = glob.glob(os.environ["HOME"] + "/.cache/cubinet/**/data.mdb", recursive=True)[0]
  > data = bytearray(open(path, "rb").read())
  > at = data.rfind(b"\x7fELF")
  > data[at + 20] ^= 1
  > open(path, "r+b").write(data)
  > END
  $ cubinet verify
  damaged: <HASH1> in <HOME>/.cache/cubinet: the seal does not match
  checked 1, damaged 1, repaired 0
  [3]
  $ cubinet --json verify
  {
    "schema": "cubinet.verify/1",
    "checked": 1,
    "damaged": [
      "<HASH1>"
    ],
    "repaired": 0,
    "details": [
      {
        "key": "<HASH1>",
        "layer_path": "<HOME>/.cache/cubinet",
        "problem": "the seal does not match",
        "repaired": false
      }
    ],
    "files_set_aside": 0
  }
  [3]
  $ cubinet ls
  KEY  OP  KERNEL  ARCH  SIZE  CREATED  USED  HITS  COMPILE  COMPILER  LAYER  PIN  PARAMS
  ! cubinet: 0 entries, <SIZE>
  ! cubinet: ls: 1 damaged not listed; run 'cubinet verify --repair'
  [3]
  $ key=$(cubinet verify | sed -n 's/^damaged: \([0-9a-f]*\) .*/\1/p'); cubinet show $key --resources
  ! cubinet: show: entry <HASH1> does not verify; run verify --repair
  [3]
  $ cubinet verify --repair --dry-run
  damaged: <HASH1> in <HOME>/.cache/cubinet: the seal does not match
  checked 1, damaged 1, repaired 0
  [3]
  $ cubinet verify --repair
  damaged: <HASH1> in <HOME>/.cache/cubinet: the seal does not match (dropped)
  checked 1, damaged 1, repaired 1
  $ cubinet verify
  checked 0, damaged 0, repaired 0
  $ . ./environment; warm
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default
  request: arch=sm_90a m=0..131072
  requested 1, already 0, compiled 1, failed 0, uncovered 0, <S> s
  ! cubinet: [1/1] compiled: fp8_quantize/vector sm_90a IN=1 SCALE=1 POW2=0 PROPAGATE=0 APPROX=0 PDL=1 VEC=16
  $ cubinet verify
  checked 1, damaged 0, repaired 0

A file that is no cabinet: set aside, told, rebuilt.

  $ . ./environment; for file in $(find ~/.cache/cubinet -name data.mdb); do echo 'not a cabinet' > $file; done
  > warm
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default
  request: arch=sm_90a m=0..131072
  requested 1, already 0, compiled 1, failed 0, uncovered 0, <S> s
  ! cubinet: <HOME>/.cache/cubinet/data.mdb was damaged (the file is too short for a meta page) and was set aside as <HOME>/.cache/cubinet/data.mdb.damaged-<TIME>-<PID>; 0 of its entries were salvaged
  ! cubinet: [1/1] compiled: fp8_quantize/vector sm_90a IN=1 SCALE=1 POW2=0 PROPAGATE=0 APPROX=0 PDL=1 VEC=16

A damaged page: the file is set aside, what can be read of it goes on, and verify says so. The next one finds nothing wrong.

  $ . ./environment; warm --cache pages --arch sm_80,sm_89,sm_90a --quiet > text; python3 - <<'END'
  > data = bytearray(open("pages/data.mdb", "rb").read())
  > for meta in (0, 4096): data[meta + 16:meta + 20] = b"\xff" * 4
  > open("pages/data.mdb", "wb").write(data)
  > END
  > cubinet --cache pages verify; echo "exit $?"; cubinet --cache pages verify; echo "exit $?"
  > cubinet --cache pages check --manifest m.json --arch sm_80,sm_89,sm_90a | grep requested
  checked 3, damaged 0, repaired 0
  files set aside 1
  exit 3
  checked 3, damaged 0, repaired 0
  exit 0
  requested 3, present 3, missing 0, uncovered 0
  ! cubinet: <WORK>/pages/data.mdb was damaged (a meta page has another magic number or version) and was set aside as <WORK>/pages/data.mdb.damaged-<TIME>-<PID>; 3 of its entries were salvaged
  $ . ./environment; warm --cache pages --arch sm_80,sm_89,sm_90a --quiet > text; echo 'no cabinet' > pages/data.mdb
  > cubinet --cache pages verify --json; echo "exit $?"; echo 'no cabinet' > pages/data.mdb
  > cubinet --cache pages verify --repair; echo "exit $?"
  {
    "schema": "cubinet.verify/1",
    "checked": 0,
    "damaged": [],
    "repaired": 0,
    "details": [],
    "files_set_aside": 1
  }
  exit 3
  checked 0, damaged 0, repaired 0
  files set aside 1
  exit 0
  ! cubinet: <WORK>/pages/data.mdb was damaged (the file is too short for a meta page) and was set aside as <WORK>/pages/data.mdb.damaged-<TIME>-<PID>; 0 of its entries were salvaged
  ! cubinet: <WORK>/pages/data.mdb was damaged (the file is too short for a meta page) and was set aside as <WORK>/pages/data.mdb.damaged-<TIME>-<PID>; 0 of its entries were salvaged

A folder that cannot be written is read: what it holds is served, nothing can be stored. Root obeys modes here as others do.

  $ . ./environment; warm --quiet --cache sealed > text && chmod -R a-w sealed && rm count
  > obey() { if [ "$(id -u)" = 0 ]; then setpriv --bounding-set=-dac_override,-dac_read_search "$@"; else "$@"; fi; }
  > obey cubinet --cache sealed check --manifest m.json --arch sm_90a
  > obey cubinet --cache sealed ls | wc -l
  > obey cubinet --cache sealed verify
  > obey cubinet --cache sealed warm --manifest m.json --arch sm_90a; echo "exit $?"
  > obey cubinet --cache sealed warm --manifest m.json --arch sm_80; echo "exit $?"
  > obey cubinet --cache sealed verify --repair; echo "exit $?"; ls count; ls sealed
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default
  request: arch=sm_90a m=0..131072
  requested 1, present 1, missing 0, uncovered 0
  2
  checked 1, damaged 0, repaired 0
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default
  request: arch=sm_90a m=0..131072
  requested 1, already 1, compiled 0, failed 0, uncovered 0, <S> s
  exit 0
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default
  request: arch=sm_80 m=0..131072
  requested 1, already 0, compiled 0, failed 1, uncovered 0, <S> s
  exit 1
  checked 1, damaged 0, repaired 0
  exit 0
  data.mdb
  lock
  ! cubinet: the cache folder sealed cannot be written by this user: it is read only, new kernels are not kept
  ! cubinet: the cache folder sealed cannot be written by this user: it is read only, new kernels are not kept
  ! cubinet: 1 entry, <SIZE>
  ! cubinet: the cache folder sealed cannot be written by this user: it is read only, new kernels are not kept
  ! cubinet: the cache folder sealed cannot be written by this user: it is read only, new kernels are not kept
  ! cubinet: the cache folder sealed cannot be written by this user: it is read only, new kernels are not kept
  ! cubinet: [1/1] failed: fp8_quantize/vector sm_80 IN=1 SCALE=1 POW2=0 PROPAGATE=0 APPROX=0 PDL=0 VEC=16: nowhere to store: the runtime has no writable cache folder at sealed; name one with --cache or CUBINET_CACHE
  ! cubinet: warm: nowhere to store: the runtime has no writable cache folder at sealed; name one with --cache or CUBINET_CACHE
  ! cubinet: the cache folder sealed cannot be written by this user: it is read only, new kernels are not kept
  ! ls: cannot access 'count': No such file or directory

A folder that cannot be made, or is not there.

  $ . ./environment; : > plain; warm --cache plain/cache
  ! cubinet: warm: cannot make the folder plain/cache; name another cache folder: Not a directory
  [1]
  $ cubinet --cache plain/cache ls
  ! cubinet: ls: --cache plain/cache: Not a directory
  [1]
  $ cubinet --cache missing ls; ls missing
  ! cubinet: ls: --cache missing: No such file or directory
  ! ls: cannot access 'missing': No such file or directory
  [2]
  $ cubinet --cache missing verify --json
  ! cubinet: verify: --cache missing: No such file or directory
  [1]
  $ cubinet --base missing ls
  ! cubinet: ls: --base missing: No such file or directory
  [1]

A folder that others can write is refused, and the message names the mend.

  $ . ./environment; mkdir open; chmod 0777 open; warm --cache open
  ! cubinet: warm: the cache folder open is not trusted: everyone can write it; run chmod o-w '<WORK>/open', or override with --trust-folder (CBN_RUNTIME_TRUST_FOLDER)
  [1]
  $ cubinet --cache open ls
  ! cubinet: ls: the cache folder open is not trusted: everyone can write it; run chmod o-w '<WORK>/open', or override with --trust-folder (CBN_RUNTIME_TRUST_FOLDER)
  [1]
  $ cubinet --cache open explain --op fp8_gemm --m 0 --n 1 --k 1 --arch sm_90a | grep chosen
  ! cubinet: explain: the cache folder open is not trusted: everyone can write it; run chmod o-w '<WORK>/open', or override with --trust-folder (CBN_RUNTIME_TRUST_FOLDER)
  [1]

  $ for verb in 'show abc' stats 'prune --all' 'unpin abc' verify; do cubinet --cache open $verb > out 2> err; echo "exit $?"; wc -l < err; cat out; done
  exit 1
  1
  exit 1
  1
  exit 1
  1
  exit 1
  1
  exit 1
  1

The override, said once.

  $ . ./environment; warm --cache open --trust-folder
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default
  request: arch=sm_90a m=0..131072
  requested 1, already 0, compiled 1, failed 0, uncovered 0, <S> s
  ! cubinet: the cache folder open is used by override although everyone can write it
  ! cubinet: [1/1] compiled: fp8_quantize/vector sm_90a IN=1 SCALE=1 POW2=0 PROPAGATE=0 APPROX=0 PDL=1 VEC=16
  $ cubinet --trust-folder --cache open ls | wc -l
  2
  ! cubinet: the cache folder open is used by override although everyone can write it
  ! cubinet: 1 entry, <SIZE>
  $ cubinet --cache open ls
  ! cubinet: ls: the cache folder open is not trusted: everyone can write it; run chmod o-w '<WORK>/open', or override with --trust-folder (CBN_RUNTIME_TRUST_FOLDER)
  [1]

A base below the cache serves what it holds; it is never written.

  $ . ./environment; warm --quiet --cache base > text && chmod -R a-w base && rm -f count
  > warm --cache overlay --base $PWD/base --json; ls count
  {
    "schema": "cubinet.warm/1",
    "profile": {
      "in": "bf16",
      "out": "bf16",
      "weight_scale": "fp32",
      "scale_gran": "block",
      "act_scale": "col4",
      "pow2": false,
      "bias": "none",
      "no_pdl": false,
      "propagate": false,
      "approx": false,
      "sms": null,
      "max_sms": null,
      "policy": "default",
      "disable": null,
      "enable": null,
      "strict_route": false,
      "arch": [
        "sm_90a"
      ],
      "max_m": 131072,
      "ops": null
    },
    "requested": 1,
    "already": 1,
    "compiled": 0,
    "built_by_others": 0,
    "failed": 0,
    "seconds": <S>,
    "failures": [],
    "uncovered": []
  }
  ! ls: cannot access 'count': No such file or directory
  [2]
  $ cubinet ls --cache overlay --base $PWD/base | cut -d ' ' -f 1
  KEY
  <HASH1>
  ! cubinet: 1 entry, <SIZE>
  $ CUBINET_BASES=$PWD/base:$PWD/none cubinet ls --cache overlay | wc -l
  2
  ! cubinet: a cache layer is left out: cannot look at the cache folder <WORK>/none; name another one: No such file or directory
  ! cubinet: 1 entry, <SIZE>

HOME unset, HOME=/: no folder, said once; a warm has nowhere to store.

  $ . ./environment; unset HOME; cubinet explain --op fp8_gemm --m 0 --n 1 --k 1 --arch sm_90a | grep chosen
  chosen: noop
  ! cubinet: no cache folder is named by CUBINET_CACHE, XDG_CACHE_HOME or HOME: kernels stay in memory only
  $ . ./environment; unset HOME; warm
  ! cubinet: warm: no cache folder: neither an option, CUBINET_CACHE, XDG_CACHE_HOME nor HOME names one
  [1]
  $ for verb in 'show abc' stats 'prune --all' 'pin abc' verify; do HOME=/ cubinet $verb; echo "exit $?"; done
  exit 1
  exit 1
  exit 1
  exit 1
  exit 1
  ! cubinet: show: no cache folder: neither an option, CUBINET_CACHE, XDG_CACHE_HOME nor HOME names one
  ! cubinet: stats: no cache folder: neither an option, CUBINET_CACHE, XDG_CACHE_HOME nor HOME names one
  ! cubinet: prune: no cache folder: neither an option, CUBINET_CACHE, XDG_CACHE_HOME nor HOME names one
  ! cubinet: pin: no cache folder: neither an option, CUBINET_CACHE, XDG_CACHE_HOME nor HOME names one
  ! cubinet: verify: no cache folder: neither an option, CUBINET_CACHE, XDG_CACHE_HOME nor HOME names one
  $ HOME=/ cubinet ls
  ! cubinet: ls: no cache folder: neither an option, CUBINET_CACHE, XDG_CACHE_HOME nor HOME names one
  [1]
  $ . ./environment; unset HOME; XDG_CACHE_HOME=$PWD/xdg warm --quiet && ls xdg
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default
  request: arch=sm_90a m=0..131072
  requested 1, already 0, compiled 1, failed 0, uncovered 0, <S> s
  cubinet
  $ . ./environment; CUBINET_CACHE=$PWD/named warm --quiet && ls -d named
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default
  request: arch=sm_90a m=0..131072
  requested 1, already 0, compiled 1, failed 0, uncovered 0, <S> s
  named

No compiler: the message lists what was looked for.

  $ CUBINET_NVRTC=/nonexistent cubinet warm --manifest m.json --arch sm_90a --cache empty
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default
  request: arch=sm_90a m=0..131072
  requested 1, already 0, compiled 0, failed 1, uncovered 0, <S> s
  ! cubinet: warm: no NVRTC at /nonexistent (CUBINET_NVRTC): no such library; give the path of a libnvrtc.so file, or none to search
  [1]
  $ CUBINET_NVRTC=/nonexistent cubinet warm --manifest m.json --arch sm_90a --cache empty --json
  {
    "schema": "cubinet.warm/1",
    "profile": {
      "in": "bf16",
      "out": "bf16",
      "weight_scale": "fp32",
      "scale_gran": "block",
      "act_scale": "col4",
      "pow2": false,
      "bias": "none",
      "no_pdl": false,
      "propagate": false,
      "approx": false,
      "sms": null,
      "max_sms": null,
      "policy": "default",
      "disable": null,
      "enable": null,
      "strict_route": false,
      "arch": [
        "sm_90a"
      ],
      "max_m": 131072,
      "ops": null
    },
    "requested": 1,
    "already": 0,
    "compiled": 0,
    "built_by_others": 0,
    "failed": 1,
    "seconds": <S>,
    "failures": [
      {
        "key": "<HASH1>",
        "spec": "fp8_quantize/vector sm_90a IN=1 SCALE=1 POW2=0 PROPAGATE=0 APPROX=0 PDL=1 VEC=16",
        "message": "no NVRTC at /nonexistent (CUBINET_NVRTC): no such library; give the path of a libnvrtc.so file, or none to search",
        "log": ""
      }
    ],
    "uncovered": []
  }
  ! cubinet: warm: no NVRTC at /nonexistent (CUBINET_NVRTC): no such library; give the path of a libnvrtc.so file, or none to search
  [1]

A build that fails, one that dies, a compiler that lacks its other half, a kernel that does not wait under PDL: exit 4, the log told.

  $ . ./environment; FAKE_NVRTC_FAIL=1 warm --cache failing -j 1
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default
  request: arch=sm_90a m=0..131072
  requested 1, already 0, compiled 0, failed 1, uncovered 0, <S> s
  ! cubinet: [1/1] failed: fp8_quantize/vector sm_90a IN=1 SCALE=1 POW2=0 PROPAGATE=0 APPROX=0 PDL=1 VEC=16: fp8_quantize/vector sm_90a: NVRTC 13.0: NVRTC_ERROR_COMPILATION: stub.cu(1): error: told to fail
  ! cubinet: warm: fp8_quantize/vector sm_90a IN=1 SCALE=1 POW2=0 PROPAGATE=0 APPROX=0 PDL=1 VEC=16: fp8_quantize/vector sm_90a: NVRTC 13.0: NVRTC_ERROR_COMPILATION: stub.cu(1): error: told to fail
  ! stub.cu(1): error: told to fail
  !
  ! 1 error detected in the compilation.
  !
  [1]
  $ . ./environment; FAKE_NVRTC_FAIL=1 warm --cache failing -j 1 --json --quiet
  {
    "schema": "cubinet.warm/1",
    "profile": {
      "in": "bf16",
      "out": "bf16",
      "weight_scale": "fp32",
      "scale_gran": "block",
      "act_scale": "col4",
      "pow2": false,
      "bias": "none",
      "no_pdl": false,
      "propagate": false,
      "approx": false,
      "sms": null,
      "max_sms": null,
      "policy": "default",
      "disable": null,
      "enable": null,
      "strict_route": false,
      "arch": [
        "sm_90a"
      ],
      "max_m": 131072,
      "ops": null
    },
    "requested": 1,
    "already": 0,
    "compiled": 0,
    "built_by_others": 0,
    "failed": 1,
    "seconds": <S>,
    "failures": [
      {
        "key": "<HASH1>",
        "spec": "fp8_quantize/vector sm_90a IN=1 SCALE=1 POW2=0 PROPAGATE=0 APPROX=0 PDL=1 VEC=16",
        "message": "fp8_quantize/vector sm_90a: NVRTC 13.0: NVRTC_ERROR_COMPILATION: stub.cu(1): error: told to fail",
        "log": "stub.cu(1): error: told to fail\n\n1 error detected in the compilation.\n"
      }
    ],
    "uncovered": []
  }
  ! cubinet: warm: fp8_quantize/vector sm_90a IN=1 SCALE=1 POW2=0 PROPAGATE=0 APPROX=0 PDL=1 VEC=16: fp8_quantize/vector sm_90a: NVRTC 13.0: NVRTC_ERROR_COMPILATION: stub.cu(1): error: told to fail
  [1]
  $ . ./environment; FAKE_NVRTC_KILL=9 warm --cache failing -j 1
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default
  request: arch=sm_90a m=0..131072
  requested 1, already 0, compiled 0, failed 1, uncovered 0, <S> s
  ! cubinet: [1/1] failed: fp8_quantize/vector sm_90a IN=1 SCALE=1 POW2=0 PROPAGATE=0 APPROX=0 PDL=1 VEC=16: fp8_quantize/vector sm_90a: the build child died by signal 9 (out of memory?)
  ! cubinet: warm: fp8_quantize/vector sm_90a IN=1 SCALE=1 POW2=0 PROPAGATE=0 APPROX=0 PDL=1 VEC=16: fp8_quantize/vector sm_90a: the build child died by signal 9 (out of memory?)
  [1]
  $ . ./environment; FAKE_NVRTC_BUILTINS=libnvrtc-builtins.so.13.1 warm --cache failing --quiet
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default
  request: arch=sm_90a m=0..131072
  requested 1, already 0, compiled 0, failed 1, uncovered 0, <S> s
  ! cubinet: warm: fp8_quantize/vector sm_90a: NVRTC 13.0 (<FAKE>/libnvrtc_stub.so) cannot use its builtins: nvrtc: error: failed to open libnvrtc-builtins.so.13.1.; it needs <FAKE>/libnvrtc-builtins.so.13.0 of the same release: install both from one package, or set CUBINET_NVRTC
  [1]
  $ . ./environment; FAKE_NVRTC_NO_WAIT=1 warm --cache failing --quiet
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default
  request: arch=sm_90a m=0..131072
  requested 1, already 0, compiled 0, failed 1, uncovered 0, <S> s
  ! cubinet: warm: fp8_quantize/vector sm_90a IN=1 SCALE=1 POW2=0 PROPAGATE=0 APPROX=0 PDL=1 VEC=16: fp8_quantize/vector sm_90a: PDL is 1, but the PTX holds no griddepcontrol.wait: a kernel launched under PDL must wait before it reads what an earlier kernel writes; add the instruction, or build with PDL 0
  ! ptxas info  : 0 bytes gmem
  ! ptxas info  : Compiling entry function 'cbn_fp8_quantize' for 'sm_90'
  ! ptxas info  : Function properties for cbn_fp8_quantize
  ! ptxas  .  0 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
  ! ptxas info  : Used 40 registers, used 1 barriers, 1024 bytes smem
  ! ptxas info  : Compile time = 1.<MS>
  ! ptxas info  : Compiling entry function 'cbn_fp8_gemm' for 'sm_90'
  ! ptxas info  : Function properties for cbn_fp8_gemm
  ! ptxas  .  0 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
  ! ptxas info  : Used 40 registers, used 1 barriers, 1024 bytes smem
  ! ptxas info  : Compile time = 1.<MS>
  ! ptxas info  : Compiling entry function 'cbn_fp8_quantize' for 'sm_90'
  ! ptxas info  : Function properties for cbn_fp8_quantize
  ! ptxas  .  0 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
  ! ptxas info  : Used 40 registers, used 1 barriers, 1024 bytes smem
  ! ptxas info  : Compile time = 1.<MS>
  ! ptxas info  : Compiling entry function 'cbn_fp8_swap_ab' for 'sm_90'
  ! ptxas info  : Function properties for cbn_fp8_swap_ab
  ! ptxas  .  0 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
  ! ptxas info  : Used 40 registers, used 1 barriers, 1024 bytes smem
  ! ptxas info  : Compile time = 1.<MS>
  ! ptxas info  : Compiling entry function 'cbn_fp8_wgmma' for 'sm_90'
  ! ptxas info  : Function properties for cbn_fp8_wgmma
  ! ptxas  .  0 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
  ! ptxas info  : Used 40 registers, used 1 barriers, 1024 bytes smem
  ! ptxas info  : Compile time = 1.<MS>
  !
  [1]
  $ . ./environment; warm --cache failing --quiet -j 1
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default
  request: arch=sm_90a m=0..131072
  requested 1, already 0, compiled 1, failed 0, uncovered 0, <S> s

No GPU: selftest says what was looked for.

  $ cubinet selftest
  ! cubinet: selftest: no CUDA driver at /nonexistent/libcuda.so.1 (CUBINET_CUDA): no such library; give the path of a libcuda.so.1, or none to search
  [1]
  $ cubinet --json selftest --op fp8_gemm
  ! cubinet: selftest: no CUDA driver at /nonexistent/libcuda.so.1 (CUBINET_CUDA): no such library; give the path of a libcuda.so.1, or none to search
  [1]
  $ cubinet selftest --op fp8_einsum
  ! cubinet: selftest: fp8_einsum has no kernel in this release
  [1]
