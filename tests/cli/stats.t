What the layers hold and what happened to them.

#collapse

  $ echo '{"schema": "cubinet.manifest/1", "shapes": [{"op": "fp8_gemm", "layer": "o_proj", "n": 7168, "k": 2048}]}' > m.json
  > cat > environment <<'END'
  > export CUBINET_NVRTC=$FAKE/libnvrtc_stub.so
  > warm() { cubinet warm --manifest m.json --arch sm_90a --policy reference --quiet "$@" > /dev/null; }
  > END
  $ cubinet stats
  ! cubinet: there is no layer: the cache is made when something is first stored
  $ . ./environment; warm && cubinet stats
  0: <HOME>/.cache/cubinet, writable
    entries  11  entries
    pinned  0  entries that eviction leaves
    used_bytes  <SIZE>  bytes of pages in use
    file_bytes  <SIZE>  bytes allocated on disk
    max_bytes  1.0 GiB  bound of the file in bytes, 0 for a base
    hits  0  kernels found
    misses_absent  22  look-ups that found no entry
    misses_damaged  0  look-ups whose entry did not verify
    misses_incompatible  0  look-ups that a version rule refused
    misses_busy  0  look-ups that met a lock past its deadline
    misses_io  0  look-ups that met a file error
    puts  11  entries stored
    evictions  0  entries evicted to make room
    compile_ms_spent  <MS>  milliseconds of building that the entries stored cost
    compile_ms_saved  <MS>  milliseconds of building that hits made needless
  $ . ./environment; warm && warm --pin && cubinet --json stats
  {
    "schema": "cubinet.stats/1",
    "entries": 11,
    "pinned": 11,
    "used_bytes": <N>,
    "file_bytes": <N>,
    "max_bytes": <N>,
    "hits": 22,
    "puts": 11,
    "evictions": 0,
    "compile_ms_spent": <N>,
    "compile_ms_saved": <N>,
    "fleet_hits": 0,
    "fleet_misses": 0,
    "fleet_refused": 0,
    "fleet_failures": 0,
    "fleet_skipped": 0,
    "fleet_pushes": 0,
    "fleet_pushes_dropped": 0,
    "fleet_waits": 0,
    "misses": {
      "absent": 22,
      "damaged": 0,
      "incompatible": 0,
      "busy": 0,
      "io": 0
    },
    "layers": [
      {
        "layer": 0,
        "path": "<HOME>/.cache/cubinet",
        "base": false,
        "entries": 11,
        "pinned": 11,
        "used_bytes": <N>,
        "file_bytes": <N>,
        "max_bytes": <N>,
        "hits": 22,
        "puts": 11,
        "evictions": 0,
        "compile_ms_spent": <N>,
        "compile_ms_saved": <N>,
        "fleet_hits": 0,
        "fleet_misses": 0,
        "fleet_refused": 0,
        "fleet_failures": 0,
        "fleet_skipped": 0,
        "fleet_pushes": 0,
        "fleet_pushes_dropped": 0,
        "fleet_waits": 0,
        "misses": {
          "absent": 22,
          "damaged": 0,
          "incompatible": 0,
          "busy": 0,
          "io": 0
        }
      }
    ],
    "fleet": null
  }
  $ cubinet stats --prometheus
  # HELP cubinet_layer_entries entries
  # TYPE cubinet_layer_entries gauge
  cubinet_layer_entries{layer="0",path="<HOME>/.cache/cubinet"} 11
  # HELP cubinet_layer_pinned entries that eviction leaves
  # TYPE cubinet_layer_pinned gauge
  cubinet_layer_pinned{layer="0",path="<HOME>/.cache/cubinet"} 11
  # HELP cubinet_layer_used_bytes bytes of pages in use
  # TYPE cubinet_layer_used_bytes gauge
  cubinet_layer_used_bytes{layer="0",path="<HOME>/.cache/cubinet"} <N>
  # HELP cubinet_layer_file_bytes bytes allocated on disk
  # TYPE cubinet_layer_file_bytes gauge
  cubinet_layer_file_bytes{layer="0",path="<HOME>/.cache/cubinet"} <N>
  # HELP cubinet_layer_max_bytes bound of the file in bytes, 0 for a base
  # TYPE cubinet_layer_max_bytes gauge
  cubinet_layer_max_bytes{layer="0",path="<HOME>/.cache/cubinet"} <N>
  # HELP cubinet_layer_hits_total kernels found
  # TYPE cubinet_layer_hits_total counter
  cubinet_layer_hits_total{layer="0",path="<HOME>/.cache/cubinet"} 22
  # HELP cubinet_layer_misses_total look-ups that served nothing
  # TYPE cubinet_layer_misses_total counter
  cubinet_layer_misses_total{layer="0",path="<HOME>/.cache/cubinet",reason="absent"} 22
  cubinet_layer_misses_total{layer="0",path="<HOME>/.cache/cubinet",reason="damaged"} 0
  cubinet_layer_misses_total{layer="0",path="<HOME>/.cache/cubinet",reason="incompatible"} 0
  cubinet_layer_misses_total{layer="0",path="<HOME>/.cache/cubinet",reason="busy"} 0
  cubinet_layer_misses_total{layer="0",path="<HOME>/.cache/cubinet",reason="io"} 0
  # HELP cubinet_layer_puts_total entries stored
  # TYPE cubinet_layer_puts_total counter
  cubinet_layer_puts_total{layer="0",path="<HOME>/.cache/cubinet"} 11
  # HELP cubinet_layer_evictions_total entries evicted to make room
  # TYPE cubinet_layer_evictions_total counter
  cubinet_layer_evictions_total{layer="0",path="<HOME>/.cache/cubinet"} 0
  # HELP cubinet_layer_compile_ms_spent_total milliseconds of building that the entries stored cost
  # TYPE cubinet_layer_compile_ms_spent_total counter
  cubinet_layer_compile_ms_spent_total{layer="0",path="<HOME>/.cache/cubinet"} <N>
  # HELP cubinet_layer_compile_ms_saved_total milliseconds of building that hits made needless
  # TYPE cubinet_layer_compile_ms_saved_total counter
  cubinet_layer_compile_ms_saved_total{layer="0",path="<HOME>/.cache/cubinet"} <N>
  # HELP cubinet_layer_fleet_hits_total kernels pulled from the fleet's server
  # TYPE cubinet_layer_fleet_hits_total counter
  cubinet_layer_fleet_hits_total{layer="0",path="<HOME>/.cache/cubinet"} 0
  # HELP cubinet_layer_fleet_misses_total questions that the fleet's server had no kernel for
  # TYPE cubinet_layer_fleet_misses_total counter
  cubinet_layer_fleet_misses_total{layer="0",path="<HOME>/.cache/cubinet"} 0
  # HELP cubinet_layer_fleet_refused_total values of the fleet's server that did not verify
  # TYPE cubinet_layer_fleet_refused_total counter
  cubinet_layer_fleet_refused_total{layer="0",path="<HOME>/.cache/cubinet"} 0
  # HELP cubinet_layer_fleet_failures_total questions that the fleet's server did not answer
  # TYPE cubinet_layer_fleet_failures_total counter
  cubinet_layer_fleet_failures_total{layer="0",path="<HOME>/.cache/cubinet"} 0
  # HELP cubinet_layer_fleet_skipped_total look-ups that left the fleet's server alone after a failure
  # TYPE cubinet_layer_fleet_skipped_total counter
  cubinet_layer_fleet_skipped_total{layer="0",path="<HOME>/.cache/cubinet"} 0
  # HELP cubinet_layer_fleet_pushes_total kernels stored on the fleet's server
  # TYPE cubinet_layer_fleet_pushes_total counter
  cubinet_layer_fleet_pushes_total{layer="0",path="<HOME>/.cache/cubinet"} 0
  # HELP cubinet_layer_fleet_pushes_dropped_total kernels that the fleet's server did not take
  # TYPE cubinet_layer_fleet_pushes_dropped_total counter
  cubinet_layer_fleet_pushes_dropped_total{layer="0",path="<HOME>/.cache/cubinet"} 0
  # HELP cubinet_layer_fleet_waits_total builds left to another machine
  # TYPE cubinet_layer_fleet_waits_total counter
  cubinet_layer_fleet_waits_total{layer="0",path="<HOME>/.cache/cubinet"} 0

A base has no counters, and no bound.

  $ . ./environment; warm --cache base && chmod -R a-w base && cubinet --base $PWD/base stats | tail -n 4
    entries  11  entries
    pinned  0  entries that eviction leaves
    used_bytes  <SIZE>  bytes of pages in use
    file_bytes  <SIZE>  bytes allocated on disk
  $ cubinet --base $PWD/base --json stats | python3 -c 'import json, sys
  > stats = json.load(sys.stdin); base = stats["layers"][1]
  > print(base["layer"], base["base"], base["entries"], base["hits"], base["misses"]["absent"], base["evictions"])
  > print(stats["entries"], stats["hits"] == stats["layers"][0]["hits"])'
  1 True 11 None None None
  22 True
  $ cubinet --base $PWD/base stats --prometheus | grep 'layer="1"' | cut -d '{' -f 1
  cubinet_layer_entries
  cubinet_layer_pinned
  cubinet_layer_used_bytes
  cubinet_layer_file_bytes
  cubinet_layer_max_bytes

A name that needs quoting.

  $ . ./environment; warm --cache 'a"b\c' && cubinet --cache 'a"b\c' stats --prometheus | grep _entries{
  cubinet_layer_entries{layer="0",path="a\"b\\c"} 11
  $ cubinet stats --json --prometheus
  ! cubinet: stats: give one of --json and --prometheus
  [2]
  $ cubinet --cache missing stats
  ! cubinet: stats: --cache missing: No such file or directory
  [1]
  $ cubinet stats extra
  ! cubinet: stats: unexpected argument 'extra'
  [2]
