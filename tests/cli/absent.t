A cache that is not there: who reads makes none, and finds nothing in it.

#collapse

  $ echo '{"schema": "cubinet.manifest/1", "shapes": [{"op": "fp8_quantize", "layer": "x", "n": 1, "k": 128}]}' > m.json
  > cat > environment <<'END'
  > export CUBINET_NVRTC=$FAKE/libnvrtc_stub.so FAKE_NVRTC_COUNT=$PWD/count
  > warm() { cubinet warm --manifest m.json --arch sm_90a "$@"; }
  > END
  $ cubinet ls; cubinet ls --json
  KEY  OP  KERNEL  ARCH  SIZE  CREATED  USED  HITS  COMPILE  COMPILER  LAYER  PIN  PARAMS
  {
    "schema": "cubinet.ls/1",
    "entries": [],
    "damaged": 0
  }
  ! cubinet: 0 entries, <SIZE>
  ! cubinet: 0 entries, <SIZE>
  $ cubinet check --manifest m.json --arch sm_90a
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default
  request: arch=sm_90a m=0..131072
  requested 1, present 0, missing 1, uncovered 0
  missing: fp8_quantize/vector sm_90a IN=1 SCALE=1 POW2=0 PROPAGATE=0 APPROX=0 PDL=1 VEC=16
  [3]
  $ cubinet verify; cubinet prune --all --json | grep kept; cubinet stats; cubinet stats --json | grep layers; cubinet prune --all
  checked 0, damaged 0, repaired 0
    "kept": 0,
    "layers": [],
  removed 0, kept 0, freed <SIZE>
  ! cubinet: there is no layer: the cache is made when something is first stored
  ! cubinet: there is no layer: the cache is made when something is first stored
  $ cubinet explain --op fp8_quantize --t 1 --k 128 --arch sm_90a | grep cached; cubinet config | grep cache_dir
  cached: no
  cache_dir  <HOME>/.cache/cubinet  HOME
  $ cubinet show abc; echo "exit $?"; cubinet pin abc; echo "exit $?"
  exit 1
  exit 1
  ! cubinet: show: no entry's key begins with abc; ls lists the keys
  ! cubinet: pin: there is no cache yet: nothing can be marked
  $ cubinet pin --manifest m.json --arch sm_90a; echo "exit $?"; cubinet unpin --manifest m.json --arch sm_90a; echo "exit $?"
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default
  request: arch=sm_90a m=0..131072
  pinned 0, in bases 0, missing 1, uncovered 0
  missing: fp8_quantize/vector sm_90a IN=1 SCALE=1 POW2=0 PROPAGATE=0 APPROX=0 PDL=1 VEC=16
  exit 3
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default
  request: arch=sm_90a m=0..131072
  unpinned 0, in bases 0, missing 1, uncovered 0
  missing: fp8_quantize/vector sm_90a IN=1 SCALE=1 POW2=0 PROPAGATE=0 APPROX=0 PDL=1 VEC=16
  exit 0
  $ find ~ -mindepth 1

The same with a folder that is there and empty, and with one that --cache or the environment names.

  $ mkdir -p empty ~/.cache/cubinet; for cache in '' '--cache empty'; do
  >   cubinet $cache ls --quiet; cubinet $cache check --manifest m.json --arch sm_90a | grep requested; cubinet $cache verify
  > done; CUBINET_CACHE=$PWD/none cubinet verify; cubinet --cache none check --manifest m.json --arch sm_90a | grep requested
  > ls -A empty none ~/.cache/cubinet; rm -r ~/.cache
  KEY  OP  KERNEL  ARCH  SIZE  CREATED  USED  HITS  COMPILE  COMPILER  LAYER  PIN  PARAMS
  requested 1, present 0, missing 1, uncovered 0
  checked 0, damaged 0, repaired 0
  KEY  OP  KERNEL  ARCH  SIZE  CREATED  USED  HITS  COMPILE  COMPILER  LAYER  PIN  PARAMS
  requested 1, present 0, missing 1, uncovered 0
  checked 0, damaged 0, repaired 0
  checked 0, damaged 0, repaired 0
  requested 1, present 0, missing 1, uncovered 0
  <HOME>/.cache/cubinet:

  empty:
  ! ls: cannot access 'none': No such file or directory
  $ mkdir open; chmod 0777 open; cubinet --cache open check --manifest m.json --arch sm_90a; echo "exit $?"; ls -A open
  exit 1
  ! cubinet: check: the cache folder open is not trusted: everyone can write it; run chmod o-w '<WORK>/open', or override with --trust-folder (CBN_RUNTIME_TRUST_FOLDER)

An existing one is opened as ever: a file that is damaged is set aside by the verb that meets it.

  $ . ./environment; cubinet warm --manifest m.json --arch sm_90a --quiet --cache there > text; echo broken > there/data.mdb
  > cubinet --cache there verify > text; echo "exit $?"; ls there | grep -c damaged
  exit 3
  1
  ! cubinet: <WORK>/there/data.mdb was damaged (the file is too short for a meta page) and was set aside as <WORK>/there/data.mdb.damaged-<TIME>-<PID>; 0 of its entries were salvaged

A base and no usable HOME: the writable layer is optional for who reads, and for a warm that has nothing to build.

  $ . ./environment; cubinet warm --manifest m.json --arch sm_90a --quiet --cache base > text; rm count
  > chmod -R a+rX,a-w base; base=$PWD/base
  > try() { for verb in 'ls --json' verify 'check --manifest m.json --arch sm_90a' 'warm --manifest m.json --arch sm_90a'; do
  >   "$@" cubinet --base $base $verb > out 2> err; echo "exit $? $(grep -c '"key"' out) $(grep -E 'checked|requested' out | cut -d , -f 1-3)"
  > done; cat err; }
  > try env -u HOME; ls count
  exit 0 1
  exit 0 0 checked 1, damaged 0, repaired 0
  exit 0 0 requested 1, present 1, missing 0
  exit 0 0 requested 1, already 1, compiled 0
  cubinet: no cache folder is named by CUBINET_CACHE, XDG_CACHE_HOME or HOME: kernels stay in memory only
  ! ls: cannot access 'count': No such file or directory
  [2]
  $ . ./environment; base=$PWD/base; mkdir locked; chmod a-w locked
  > obey() { if [ "$(id -u)" = 0 ]; then setpriv --bounding-set=-dac_override,-dac_read_search "$@"; else "$@"; fi; }
  > CUBINET_BASES=$base env -u HOME cubinet ls | wc -l
  > export HOME=$PWD/locked/none; obey cubinet --base $base ls | wc -l
  > obey cubinet --base $base warm --manifest m.json --arch sm_90a | grep requested
  > obey cubinet --base $base warm --manifest m.json --arch sm_80 | grep requested; echo "exit ${PIPESTATUS[0]}"
  > obey cubinet warm --manifest m.json --arch sm_90a; echo "exit $?"; obey cubinet verify; ls -A locked
  2
  2
  requested 1, already 1, compiled 0, failed 0, uncovered 0, <S> s
  requested 1, already 0, compiled 0, failed 1, uncovered 0, <S> s
  exit 1
  exit 1
  checked 0, damaged 0, repaired 0
  ! cubinet: no cache folder is named by CUBINET_CACHE, XDG_CACHE_HOME or HOME: kernels stay in memory only
  ! cubinet: 1 entry, <SIZE>
  ! cubinet: 1 entry, <SIZE>
  ! cubinet: a cache layer is left out: cannot make the folder <WORK>/locked/none; name another cache folder: Permission denied
  ! cubinet: a cache layer is left out: cannot make the folder <WORK>/locked/none; name another cache folder: Permission denied
  ! cubinet: [1/1] failed: fp8_quantize/vector sm_80 IN=1 SCALE=1 POW2=0 PROPAGATE=0 APPROX=0 PDL=0 VEC=16: nowhere to store: the runtime has no writable cache folder at <WORK>/locked/none/.cache/cubinet; name one with --cache or CUBINET_CACHE
  ! cubinet: warm: nowhere to store: the runtime has no writable cache folder at <WORK>/locked/none/.cache/cubinet; name one with --cache or CUBINET_CACHE
  ! cubinet: warm: cannot make the folder <WORK>/locked/none; name another cache folder: Permission denied

One folder under two names is one too many.

  $ for names in '--cache base --base base/' "--cache base --base $PWD/base" '--base base --base ./base'; do
  >   cubinet $names ls; echo "exit $?"; done
  > ln -s base link; cubinet --cache base --base link --json verify; echo "exit $?"
  > CUBINET_BASES=$PWD/base:$PWD/base cubinet stats; echo "exit $?"
  exit 2
  exit 2
  exit 2
  exit 2
  exit 2
  ! cubinet: ls: the base base/ is the same folder as the cache base; name each once
  ! cubinet: ls: the base <WORK>/base is the same folder as the cache base; name each once
  ! cubinet: ls: the base ./base is the same folder as the base base; name each once
  ! cubinet: verify: the base link is the same folder as the cache base; name each once
  ! cubinet: stats: the base <WORK>/base is the same folder as the base <WORK>/base; name each once
