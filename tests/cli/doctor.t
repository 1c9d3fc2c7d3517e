A machine without a GPU, with a compiler: nothing is wrong.

#collapse

  $ export CUBINET_NVRTC=$FAKE/libnvrtc_stub.so
  > cubinet doctor
  absent  driver: no CUDA driver at /nonexistent/libcuda.so.1 (CUBINET_CUDA): no such library; give the path of a libcuda.so.1, or none to search
          mend: nothing is needed to warm a cache; to launch, install an NVIDIA driver of 12.4 or newer, or name its libcuda.so.1 in CUBINET_CUDA
  ok  nvrtc: NVRTC 13.0 from <FAKE>/libnvrtc_stub.so
  ok  cache-folder: <HOME>/.cache/cubinet: exists, <FILESYSTEM>, mode 0700, owner <UID>, writable, <SIZE> free
  ok  lock: free to read
  ok  layer: 0: <HOME>/.cache/cubinet, writable overlay, 0 entries, <N> bytes
  $ export CUBINET_NVRTC=$FAKE/libnvrtc_stub.so
  > cubinet --json doctor | python3 -c 'import json, sys
  > for check in json.load(sys.stdin)["checks"]: print(check["name"], check["ok"], check["state"])'
  driver True absent
  nvrtc True ok
  cache-folder True ok
  lock True ok
  layer True ok

Without a compiler, and with a folder that others can write: exit 1, each with its mend.

  $ CUBINET_NVRTC=/nonexistent cubinet doctor | grep -A1 nvrtc; echo "exit ${PIPESTATUS[0]}"
  failed  nvrtc: no NVRTC at /nonexistent (CUBINET_NVRTC): no such library; give the path of a libnvrtc.so file, or none to search
          mend: install libnvrtc of CUDA 12 or 13 (the PyPI wheel nvidia-cuda-nvrtc will do), or name it in CUBINET_NVRTC; a cache that is warm needs none
  ok  cache-folder: <HOME>/.cache/cubinet: exists, <FILESYSTEM>, mode 0700, owner <UID>, writable, <SIZE> free
  exit 1
  $ export CUBINET_NVRTC=$FAKE/libnvrtc_stub.so
  > mkdir open; chmod 0777 open; cubinet --cache open doctor --quiet
  absent  driver: no CUDA driver at /nonexistent/libcuda.so.1 (CUBINET_CUDA): no such library; give the path of a libcuda.so.1, or none to search
          mend: nothing is needed to warm a cache; to launch, install an NVIDIA driver of 12.4 or newer, or name its libcuda.so.1 in CUBINET_CUDA
  ok  nvrtc: NVRTC 13.0 from <FAKE>/libnvrtc_stub.so
  failed  cache-folder: open: exists, <FILESYSTEM>, mode 0777, owner <UID>, writable, <SIZE> free; everyone can write it
          mend: run chmod o-w '<WORK>/open', or override with --trust-folder (CBN_RUNTIME_TRUST_FOLDER)
  absent  lock: no lock file yet
          mend: nothing is needed: it is made when the folder is first used
  failed  layer: no layer is open: every kernel is compiled to memory
          mend: name a cache folder with --cache or CUBINET_CACHE
  [1]

A lock that somebody holds for longer than a wait may take.

  $ export CUBINET_NVRTC=$FAKE/libnvrtc_stub.so; cubinet doctor > text; python3 - <<'END'
  > import fcntl, os, struct, subprocess
  > file = open(os.environ["HOME"] + "/.cache/cubinet/lock", "r+b")
  > request = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 2 ** 32 + 1, 1, 0)
  > fcntl.fcntl(file, 37, request)  # F_OFD_SETLK, the byte that guards the data
  > print("exit", subprocess.run("cubinet doctor --quiet | grep -A1 lock; exit ${PIPESTATUS[0]}", shell=True, executable="/bin/bash").returncode)
  > END
  failed  lock: <HOME>/.cache/cubinet/lock is held by another process for longer than <MS>
          mend: end or resume the process that holds it (fuser names those that have it open); until then every kernel is compiled anew
  failed  layer: the lock <HOME>/.cache/cubinet/lock did not come free in <MS>: another process holds it
          mend: run `cubinet verify`
  exit 1

Settings and where they came from.

  $ unset CUBINET_NVRTC; cubinet config
  cache_dir  <HOME>/.cache/cubinet  HOME
  bases  -  default
  nvrtc_path  -  default
  cuda_path  /nonexistent/libcuda.so.1  CUBINET_CUDA
  builder_path  /proc/self/exe  option
  policy  -  default
  disable  -  default
  enable  -  default
  fleet  -  default
  max_bytes  1073741824  default
  lock_timeout_ms  2000  default
  flight_timeout_ms  60000  default
  build_timeout_ms  300000  default
  miss_policy  block  default
  trust_folder  no  default
  $ mkdir own; cubinet --cache own --trust-folder config | tail -n 1
  trust_folder  yes  option
  $ CUBINET_CACHE=$PWD/c CUBINET_BASES=$PWD/a:$PWD/b CUBINET_POLICY=reference cubinet --quiet config | grep -E 'cache_dir|bases|policy'
  cache_dir  <WORK>/c  CUBINET_CACHE
  bases  <WORK>/a:<WORK>/b  CUBINET_BASES
  policy  reference  CUBINET_POLICY
  miss_policy  block  default
  $ CUBINET_CACHE=$PWD/c cubinet --json --cache $PWD/d config | head -n 8
  {
    "schema": "cubinet.config/1",
    "settings": [
      {
        "name": "cache_dir",
        "value": "<WORK>/d",
        "origin": "option"
      },
