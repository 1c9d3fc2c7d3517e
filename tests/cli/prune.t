Removal by rule.

#collapse

  $ echo '{"schema": "cubinet.manifest/1", "shapes": [{"op": "fp8_gemm", "layer": "o_proj", "n": 7168, "k": 2048}]}' > m.json
  > cat > environment <<'END'
  > export CUBINET_NVRTC=$FAKE/libnvrtc_stub.so
  > warm() { cubinet warm --manifest m.json --arch sm_90a --policy reference --quiet -j 1 "$@" > /dev/null; }
  > count() { cubinet ls --quiet "$@" | tail -n +2 | wc -l; }
  > END
  > . ./environment; warm; warm --arch sm_80; count
  15

A dry run tells the same and removes nothing.

  $ . ./environment; cubinet prune --op fp8_quantize --arch sm_80 --dry-run; count
  would remove: <HASH1> <SIZE>
  would remove 1, keep 14, free <SIZE>
  15
  $ . ./environment; cubinet --json prune --op fp8_quantize --arch sm_80 --dry-run; count
  {
    "schema": "cubinet.prune/1",
    "dry_run": true,
    "removed": 1,
    "kept": 14,
    "freed_bytes": <N>,
    "keys": [
      "<HASH1>"
    ]
  }
  15
  $ . ./environment; cubinet --json prune --op fp8_quantize --arch sm_80; count
  {
    "schema": "cubinet.prune/1",
    "dry_run": false,
    "removed": 1,
    "kept": 14,
    "freed_bytes": <N>,
    "keys": [
      "<HASH1>"
    ]
  }
  14
  $ . ./environment; cubinet prune --op fp8_quantize --arch sm_80; count
  removed 0, kept 14, freed <SIZE>
  14

Rules narrow each other.

  $ . ./environment; cubinet prune --older-than 30d; cubinet prune --arch sm_80 --older-than 1w; count
  removed 0, kept 14, freed <SIZE>
  removed 0, kept 14, freed <SIZE>
  14
  $ . ./environment; cubinet prune --compiler '<13.0'; cubinet prune --compiler '<12'; cubinet prune --stale; count
  removed 0, kept 14, freed <SIZE>
  removed 0, kept 14, freed <SIZE>
  removed 0, kept 14, freed <SIZE>
  14
  $ . ./environment; cubinet prune --arch sm_80 --compiler '<13.1' --dry-run | tail -n 1; cubinet prune --arch sm_80 --compiler '<13.1' | tail -n 1; count
  would remove 3, keep 11, free <SIZE>
  removed 3, kept 11, freed <SIZE>
  11
  $ . ./environment; used() { cubinet --json stats | sed -n 's/^  "used_bytes": \([0-9]*\),/\1/p'; }
  > cubinet prune --max-size 1GiB | tail -n 1; count; warm --arch sm_80; before=$(used)
  > cubinet prune --max-size $((before - 1))B > /dev/null; [ $(used) -lt $before ] && [ $(count) -gt 0 ] && echo less
  removed 0, kept 11, freed <SIZE>
  11
  less
  $ . ./environment; cubinet prune --op fp8_none; count
  removed 0, kept 14, freed <SIZE>
  14

Pinned entries stay, whatever the rule; a base is never touched.

  $ . ./environment; cubinet pin $(cubinet --json --quiet ls --op fp8_quantize | sed -n 's/.*"key": "\(.*\)",/\1/p') | wc -l
  > cubinet prune --max-size 0 | tail -n 1; count; count --op fp8_quantize
  2
  removed 12, kept 2, freed <SIZE>
  2
  2
  $ . ./environment; cubinet prune --all --json; cubinet prune --op fp8_quantize; count
  {
    "schema": "cubinet.prune/1",
    "dry_run": false,
    "removed": 0,
    "kept": 2,
    "freed_bytes": <N>,
    "keys": []
  }
  removed 0, kept 2, freed <SIZE>
  2
  $ . ./environment; cubinet prune --all --unpinned-too --dry-run | tail -n 1; cubinet prune --all --unpinned-too | tail -n 1; count
  would remove 2, keep 0, free <SIZE>
  removed 2, kept 0, freed <SIZE>
  0
  $ . ./environment; warm --cache base && chmod -R a-w base
  > cubinet --base $PWD/base prune --all --unpinned-too; count --base $PWD/base
  removed 0, kept 0, freed <SIZE>
  11

Stale: cut from templates that this library does not hold.

  $ . ./environment; warm --arch sm_90a,sm_80; library=$(ldd $(command -v cubinet) | sed -n 's/.*libcubinet.so.0 => \(.*\) (.*/\1/p')
  > mkdir next; python3 - $library next/libcubinet.so.0 <<'END'
  > import sys
  > data = open(sys.argv[1], "rb").read()
  > at = data.index(b'#include "fp8_common.cuh"')
  > open(sys.argv[2], "wb").write(data[:at] + b'#include\t' + data[at + 9:])
  > END
  > export LD_LIBRARY_PATH=$PWD/next; count; cubinet prune --stale --dry-run | tail -n 1
  15
  would remove 15, keep 0, free <SIZE>

Compaction gives the bytes back.

  $ . ./environment; size() { stat -c %s $HOME/.cache/cubinet/data.mdb; }
  > cubinet warm --model $MODELS/DeepSeek-V3.json --tp 8 --arch sm_90a --ops fp8_gemm,fp8_quantize --quiet > /dev/null; before=$(size)
  > cubinet prune --all > /dev/null; [ $(size) = $before ] && echo 'the file keeps its size'
  > cubinet prune --compact; [ $(size) -lt $before ] && echo 'smaller'; count
  > warm; count; cubinet verify
  the file keeps its size
  removed 0, kept 0, freed <SIZE>
  smaller
  0
  11
  checked 11, damaged 0, repaired 0
  $ . ./environment; cubinet prune --compact --dry-run; cubinet prune --all --compact | tail -n 1; count
  would remove 0, keep 11, free <SIZE>
  removed 11, kept 0, freed <SIZE>
  0

Another process has the file open: nothing is rewritten, and what the rules removed is told.

  $ . ./environment; warm --ops fp8_quantize; python3 - <<'END'
  > import fcntl, os, struct, subprocess
  > file = open(os.environ["HOME"] + "/.cache/cubinet/lock", "r+b")
  > request = struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, 2 ** 32 + 2, 1, 0)
  > fcntl.fcntl(file, 37, request)  # F_OFD_SETLK, the byte that says who is present
  > print("exit", subprocess.run(["cubinet", "prune", "--all", "--compact"]).returncode)
  > END
  > count
  removed: <HASH2> <SIZE>
  exit 1
  0
  ! cubinet: prune: another process has <HOME>/.cache/cubinet/data.mdb open, or this one for reading; compact when it is gone

Nothing to write to.

  $ . ./environment
  > obey() { if [ "$(id -u)" = 0 ]; then setpriv --bounding-set=-dac_override,-dac_read_search "$@"; else "$@"; fi; }
  > obey cubinet --cache base prune --all; echo "exit $?"; count --cache base
  exit 1
  11
  ! cubinet: the cache folder base cannot be written by this user: it is read only, new kernels are not kept
  ! cubinet: prune: there is no cache folder that can be written; name one with --cache or CUBINET_CACHE
  $ cubinet --cache missing prune --all
  ! cubinet: prune: --cache missing: No such file or directory
  [1]

Usage.

  $ cubinet prune
  ! cubinet: prune: give a rule: --max-size, --older-than, --arch, --op, --compiler, --stale, --all or --compact
  [2]
  $ cubinet prune --dry-run
  ! cubinet: prune: give a rule: --max-size, --older-than, --arch, --op, --compiler, --stale, --all or --compact
  [2]
  $ cubinet prune --unpinned-too
  ! cubinet: prune: --unpinned-too goes with --all
  [2]
  $ cubinet prune --arch sm_90
  ! cubinet: prune: --arch: arch 'sm_90': the kernels need 'sm_90a'; give that
  [2]
  $ for size in 5Q 5 5mib 1.5GiB -1MiB '' ' 5MiB' '5 MiB' 5MiBs 0x5MiB 9007199254740993TiB 99999999999999999999999999B; do
  >   cubinet prune --max-size "$size"; echo "exit $?"
  > done
  exit 2
  exit 2
  exit 2
  exit 2
  exit 2
  exit 2
  exit 2
  exit 2
  exit 2
  exit 2
  exit 2
  exit 2
  ! cubinet: prune: --max-size '5Q' is not a size; give a whole number of B, KiB, MiB, GiB or TiB, as in 512MiB
  ! cubinet: prune: --max-size '5' is not a size; give a whole number of B, KiB, MiB, GiB or TiB, as in 512MiB
  ! cubinet: prune: --max-size '5mib' is not a size; give a whole number of B, KiB, MiB, GiB or TiB, as in 512MiB
  ! cubinet: prune: --max-size '1.5GiB' is not a size; give a whole number of B, KiB, MiB, GiB or TiB, as in 512MiB
  ! cubinet: prune: --max-size '-1MiB' is negative; give a whole number of B, KiB, MiB, GiB or TiB, as in 512MiB
  ! cubinet: prune: --max-size is empty
  ! cubinet: prune: --max-size ' 5MiB' is not a size; give a whole number of B, KiB, MiB, GiB or TiB, as in 512MiB
  ! cubinet: prune: --max-size '<SIZE>' is not a size; give a whole number of B, KiB, MiB, GiB or TiB, as in 512MiB
  ! cubinet: prune: --max-size '5MiBs' is not a size; give a whole number of B, KiB, MiB, GiB or TiB, as in 512MiB
  ! cubinet: prune: --max-size '0x5MiB' is not a size; give a whole number of B, KiB, MiB, GiB or TiB, as in 512MiB
  ! cubinet: prune: --max-size '9007199254740993TiB' is too large; give a whole number of B, KiB, MiB, GiB or TiB, as in 512MiB
  ! cubinet: prune: --max-size '99999999999999999999999999B' is too large; give a whole number of B, KiB, MiB, GiB or TiB, as in 512MiB
  $ for span in 30 30D 0d 0 -1d 1.5h 1month 99999999999999999w d; do cubinet prune --older-than "$span"; echo "exit $?"; done
  exit 2
  exit 2
  exit 2
  exit 2
  exit 2
  exit 2
  exit 2
  exit 2
  exit 2
  ! cubinet: prune: --older-than '30' is not a span of time; give a whole number of s, m, h, d or w, as in 30d
  ! cubinet: prune: --older-than '30D' is not a span of time; give a whole number of s, m, h, d or w, as in 30d
  ! cubinet: prune: --older-than '0d' is too small; give a whole number of s, m, h, d or w, as in 30d
  ! cubinet: prune: --older-than '0' is too small; give a whole number of s, m, h, d or w, as in 30d
  ! cubinet: prune: --older-than '-1d' is negative; give a whole number of s, m, h, d or w, as in 30d
  ! cubinet: prune: --older-than '1.5h' is not a span of time; give a whole number of s, m, h, d or w, as in 30d
  ! cubinet: prune: --older-than '1month' is not a span of time; give a whole number of s, m, h, d or w, as in 30d
  ! cubinet: prune: --older-than '99999999999999999w' is too large; give a whole number of s, m, h, d or w, as in 30d
  ! cubinet: prune: --older-than 'd' is not a span of time; give a whole number of s, m, h, d or w, as in 30d
  $ for version in 13.0 '<' '<x' '<13.' '<13.0.1' '>13' '<0' '<13.0 '; do cubinet prune --compiler "$version"; echo "exit $?"; done
  exit 2
  exit 2
  exit 2
  exit 2
  exit 2
  exit 2
  exit 2
  exit 2
  ! cubinet: prune: --compiler '13.0' is no bound; give '<VERSION', as in '<13.0'
  ! cubinet: prune: --compiler '<' is no bound; give '<VERSION', as in '<13.0'
  ! cubinet: prune: --compiler '<x' is no bound; give '<VERSION', as in '<13.0'
  ! cubinet: prune: --compiler '<13.' is no bound; give '<VERSION', as in '<13.0'
  ! cubinet: prune: --compiler '<13.0.1' is no bound; give '<VERSION', as in '<13.0'
  ! cubinet: prune: --compiler '>13' is no bound; give '<VERSION', as in '<13.0'
  ! cubinet: prune: --compiler '<0' is no bound; give '<VERSION', as in '<13.0'
  ! cubinet: prune: --compiler '<13.0 ' is no bound; give '<VERSION', as in '<13.0'
