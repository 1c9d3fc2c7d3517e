Every kind of usage error: exit 2, nothing on stdout, stderr says what is wrong.

No verb, an unknown verb, verbs that this version does not have.

  $ cubinet
  ! usage: cubinet [global options] VERB [options]
  !
  ! Verbs:
  !   warm       build every kernel that a model needs
  !   check      say whether a warm would build anything
  !   shapes     list the layers of a model
  !   ls         list the cache
  !   show       decode one entry, or say how two keys differ
  !   stats      count entries, bytes, hits and misses by layer
  !   verify     check every entry of the cache
  !   prune      remove entries by rule
  !   pin        mark entries that eviction and prune must leave
  !   unpin      take the marks away
  !   pack       write one file for deployment
  !   unpack     store the entries of a pack
  !   explain    say which kernel a call would take, and why
  !   matrix     print the routing table over several M
  !   selftest   run every kernel on the GPU against the reference
  !   doctor     report what works here and how to mend what does not
  !   config     print every setting and where it came from
  !   version    print the versions
  !   help       print help
  !
  ! Global options, before or after the verb:
  !   --cache DIR                 cache folder (default: CUBINET_CACHE, $XDG_CACHE_HOME/cubinet,
  !                               $HOME/.cache/cubinet)
  !   --base PATH                 read-only base layer below it, a folder or a pack; may be given
  !                               several times (default: CUBINET_BASES, a colon list)
  !   --fleet URL                 server that a fleet shares, redis://HOST[:PORT][/DB] or unix:///PATH
  !                               (default: CUBINET_FLEET, where a password is better kept)
  !   --json                      print JSON
  !   --quiet                     no progress and no notices on stderr
  !   --trust-folder              use a cache folder that is refused since others could write it or
  !                               replace it
  !   -h, --help                  this help
  !   --version                   the same as the verb version
  !
  ! Exit codes: 0 done; 1 failed; 2 usage; 3 damage found, or coverage incomplete; 4 partly done.
  ! 'cubinet help VERB' tells a verb's options.
  [2]
  $ cubinet frobnicate
  ! cubinet: unknown verb 'frobnicate'; see 'cubinet help'
  [2]
  $ for verb in pack unpack tune bench; do cubinet $verb; echo "exit $?"; done
  exit 2
  exit 2
  exit 2
  exit 2
  ! cubinet: pack: give the file's name OUT, or - for standard output
  ! cubinet: unpack: give the file's name IN, or - for standard input
  ! cubinet: unknown verb 'tune'; see 'cubinet help'
  ! cubinet: unknown verb 'bench'; see 'cubinet help'

Unknown options, options of another verb, arguments that are missing or too many.

  $ cubinet --frobnicate version
  ! cubinet: unknown option --frobnicate; see 'cubinet help'
  [2]
  $ cubinet warm --frobnicate
  ! cubinet: warm: unknown option --frobnicate; see 'cubinet help warm'
  [2]
  $ cubinet ls -x
  ! cubinet: ls: unknown option -x; see 'cubinet help ls'
  [2]
  $ cubinet ls --tp 8
  ! cubinet: ls: unknown option --tp; see 'cubinet help ls'
  [2]
  $ cubinet warm --model
  ! cubinet: warm: --model needs an argument
  [2]
  $ cubinet --cache
  ! cubinet: --cache needs an argument
  [2]
  $ cubinet --cache ""
  ! cubinet: --cache is empty
  [2]
  $ cubinet --json=yes version
  ! cubinet: --json=yes: option does not take an argument
  [2]
  $ cubinet version extra
  ! cubinet: version: unexpected argument 'extra'
  [2]
  $ cubinet help warm extra
  ! cubinet: help: unexpected argument 'extra'
  [2]
  $ cubinet help frobnicate
  ! cubinet: help: unknown verb 'frobnicate'; see 'cubinet help'
  [2]
  $ cubinet help --man --completion bash
  ! cubinet: help: give one of --man and --completion
  [2]
  $ cubinet help --completion tcsh
  ! cubinet: help: --completion 'tcsh' is none of bash
  [2]

Numbers are strict.

  $ cubinet shapes --model x --tp 0
  ! cubinet: shapes: --tp '0' is too small; give 1 to 65536
  [2]
  $ cubinet shapes --model x --tp -1
  ! cubinet: shapes: --tp '-1' is negative; give 1 to 65536
  [2]
  $ cubinet shapes --model x --tp 8x
  ! cubinet: shapes: --tp '8x' is not a whole number; give 1 to 65536
  [2]
  $ cubinet shapes --model x --tp 0x8
  ! cubinet: shapes: --tp '0x8' is not a whole number; give 1 to 65536
  [2]
  $ cubinet shapes --model x --tp +8
  ! cubinet: shapes: --tp '+8' is not a whole number; give 1 to 65536
  [2]
  $ cubinet shapes --model x --tp " 8"
  ! cubinet: shapes: --tp ' 8' is not a whole number; give 1 to 65536
  [2]
  $ cubinet shapes --model x --tp ""
  ! cubinet: shapes: --tp is empty
  [2]
  $ cubinet shapes --model x --tp 8.0
  ! cubinet: shapes: --tp '8.0' is not a whole number; give 1 to 65536
  [2]
  $ cubinet shapes --model x --tp 65537
  ! cubinet: shapes: --tp '65537' is too large; give 1 to 65536
  [2]
  $ cubinet shapes --model x --tp 99999999999999999999999
  ! cubinet: shapes: --tp '99999999999999999999999' is too large; give 1 to 65536
  [2]
  $ cubinet shapes --model x --ep 0
  ! cubinet: shapes: --ep '0' is too small; give 1 to 65536
  [2]
  $ cubinet warm --all --arch sm_90a -j 0
  ! cubinet: warm: --jobs '0' is too small; give 1 to 1024
  [2]
  $ cubinet warm --all --arch sm_90a --max-m 2147483648
  ! cubinet: warm: --max-m '2147483648' is too large; give 0 to 2147483647
  [2]
  $ cubinet explain --op fp8_gemm --m 1 --n 9223372036854775808 --k 1 --arch sm_90a
  ! cubinet: explain: --n '9223372036854775808' is too large; give 0 or more
  [2]
  $ cubinet matrix --op fp8_gemm --m 1,,2 --n 64 --k 128 --arch sm_90a
  ! cubinet: matrix: --m '' is not a whole number; give 0 or more
  [2]
  $ cubinet matrix --op fp8_gemm --m 1,x --n 64 --k 128 --arch sm_90a
  ! cubinet: matrix: --m 'x' is not a whole number; give 0 or more
  [2]
  $ cubinet matrix --op fp8_gemm --m 1, --n 64 --k 128 --arch sm_90a
  ! cubinet: matrix: --m '' is not a whole number; give 0 or more
  [2]
  $ cubinet explain --op fp8_gemm --m 1 --n 64 --k 128 --arch sm_90a --sms 0
  ! cubinet: explain: --sms '0' is too small; give 1 to 65536
  [2]

Choices.

  $ cubinet explain --op fp8_gemm --m 1 --n 64 --k 128 --arch sm_90a --in int8
  ! cubinet: explain: --in 'int8' is none of bf16|fp16|fp32|e4m3
  [2]
  $ cubinet explain --op fp8_gemm --m 1 --n 64 --k 128 --arch sm_90a --out e4m3
  ! cubinet: explain: --out 'e4m3' is none of bf16|fp16|fp32
  [2]
  $ cubinet explain --op fp8_gemm --m 1 --n 64 --k 128 --arch sm_90a --act-scale packed
  ! cubinet: explain: --act-scale 'packed' is none of row|col|col4|packed-row|packed-col
  [2]
  $ cubinet ls --sort name
  ! cubinet: ls: --sort 'name' is none of used|size|created
  [2]
  $ cubinet explain --op fp8_gemm --m 1 --n 64 --k 128 --arch sm_90a --policy frobnicate
  ! cubinet: explain: policy: 'frobnicate' is not known; give one of reference, default
  [2]
  $ cubinet explain --op fp8_gemm --m 1 --n 64 --k 128 --arch sm_90a --disable frobnicate
  ! cubinet: explain: disable: 'frobnicate' is not a candidate; give some of tcgen05, swap_ab_fused, swap_ab, wgmma, generic, vector, scalar
  [2]
  $ cubinet explain --op fp8_gemm --m 1 --n 64 --k 128 --arch sm_90a --enable frobnicate
  ! cubinet: explain: enable: 'frobnicate' is not a candidate; give some of tcgen05, swap_ab_fused, swap_ab, wgmma, generic, vector, scalar
  [2]

Architectures: the message names the right one.

  $ cubinet warm --all --arch sm_90
  ! cubinet: warm: --arch: arch 'sm_90': the kernels need 'sm_90a'; give that
  [2]
  $ cubinet check --all --arch sm_90a,sm_100
  ! cubinet: check: --arch: arch 'sm_100': the kernels need 'sm_100a'; give that
  [2]
  $ cubinet check --all --arch sm_90a,
  ! cubinet: check: --arch: arch '' is not known; give one of sm_80, sm_86, sm_87, sm_89, sm_90a, sm_100a, sm_103a, sm_110a, sm_120a, sm_121a
  [2]
  $ cubinet check --all --arch sm_70
  ! cubinet: check: --arch: arch 'sm_70' is not known; give one of sm_80, sm_86, sm_87, sm_89, sm_90a, sm_100a, sm_103a, sm_110a, sm_120a, sm_121a
  [2]
  $ cubinet ls --arch hopper
  ! cubinet: ls: --arch: arch 'hopper' is not known; give one of sm_80, sm_86, sm_87, sm_89, sm_90a, sm_100a, sm_103a, sm_110a, sm_120a, sm_121a
  [2]
  $ cubinet warm --all
  ! cubinet: warm: --arch is missing
  [2]
  $ cubinet explain --op fp8_gemm --m 1 --n 64 --k 128
  ! cubinet: explain: --arch is missing
  [2]
  $ cubinet explain --op fp8_gemm --m 1 --n 64 --k 128 --arch sm_90a,sm_80
  ! cubinet: explain: --arch 'sm_90a,sm_80' is a list; explain takes one architecture
  [2]

Requests.

  $ cubinet warm --arch sm_90a
  ! cubinet: warm: give one of --model, --manifest and --all
  [2]
  $ cubinet warm --all --model x --arch sm_90a
  ! cubinet: warm: give one of --model, --manifest and --all
  [2]
  $ cubinet check --manifest x --model x --arch sm_90a
  ! cubinet: check: give one of --model, --manifest and --all
  [2]
  $ cubinet check --manifest x --tp 8 --arch sm_90a
  ! cubinet: check: --tp goes with --model
  [2]
  $ cubinet check --all --ep 8 --arch sm_90a
  ! cubinet: check: --ep goes with --model
  [2]
  $ cubinet warm --all --arch sm_90a --ops fp8_gemm,fp4_gemm
  ! cubinet: warm: --ops 'fp4_gemm' is none of fp8_gemm, fp8_quantize, fp8_einsum, fp8_grouped_gemm
  [2]
  $ cubinet warm --all --arch sm_90a --ops fp8_gemm,
  ! cubinet: warm: --ops '' is none of fp8_gemm, fp8_quantize, fp8_einsum, fp8_grouped_gemm
  [2]
  $ cubinet shapes
  ! cubinet: shapes: --model is missing
  [2]
  $ cubinet verify --dry-run
  ! cubinet: verify: --dry-run goes with --repair
  [2]

Extents: each operation says which it needs and which it does not take.

  $ cubinet explain --arch sm_90a
  ! cubinet: explain: --op is missing
  [2]
  $ cubinet explain --op fp4_gemm --arch sm_90a
  ! cubinet: explain: --op 'fp4_gemm' is none of fp8_gemm, fp8_quantize, fp8_einsum, fp8_grouped_gemm
  [2]
  $ cubinet explain --op fp8_gemm --n 64 --k 128 --arch sm_90a
  ! cubinet: explain: fp8_gemm needs --m
  [2]
  $ cubinet explain --op fp8_gemm --m 1 --k 128 --arch sm_90a
  ! cubinet: explain: fp8_gemm needs --n
  [2]
  $ cubinet explain --op fp8_gemm --m 1 --n 64 --arch sm_90a
  ! cubinet: explain: fp8_gemm needs --k
  [2]
  $ cubinet explain --op fp8_gemm --m 1 --n 64 --k 128 --t 5 --arch sm_90a
  ! cubinet: explain: fp8_gemm takes no --t
  [2]
  $ cubinet explain --op fp8_gemm --m 1 --n 64 --k 128 --experts 5 --arch sm_90a
  ! cubinet: explain: fp8_gemm takes no --experts
  [2]
  $ cubinet explain --op fp8_quantize --k 128 --arch sm_90a
  ! cubinet: explain: fp8_quantize needs --t
  [2]
  $ cubinet explain --op fp8_quantize --t 1 --arch sm_90a
  ! cubinet: explain: fp8_quantize needs --k
  [2]
  $ cubinet explain --op fp8_quantize --t 1 --g 2 --arch sm_90a
  ! cubinet: explain: fp8_quantize needs --d
  [2]
  $ cubinet explain --op fp8_quantize --t 1 --d 128 --arch sm_90a
  ! cubinet: explain: fp8_quantize needs --g
  [2]
  $ cubinet explain --op fp8_quantize --t 1 --g 2 --d 128 --k 128 --arch sm_90a
  ! cubinet: explain: fp8_quantize with groups takes no --k
  [2]
  $ cubinet explain --op fp8_quantize --m 1 --k 128 --arch sm_90a
  ! cubinet: explain: fp8_quantize takes no --m
  [2]
  $ cubinet explain --op fp8_einsum --t 1 --g 2 --r 64 --arch sm_90a
  ! cubinet: explain: fp8_einsum needs --d
  [2]
  $ cubinet explain --op fp8_grouped_gemm --m 1 --n 64 --k 128 --arch sm_90a
  ! cubinet: explain: fp8_grouped_gemm needs --experts
  [2]
  $ cubinet matrix --op fp8_gemm --n 64 --k 128 --arch sm_90a
  ! cubinet: matrix: --m is missing
  [2]
  $ cubinet matrix --op fp8_gemm --m 1 --k 128 --arch sm_90a
  ! cubinet: matrix: fp8_gemm needs --n
  [2]
  $ cubinet explain --op fp8_gemm --m 1 --n 64 --k 128 --lda 64 --arch sm_90a
  ! cubinet: explain: lda: 64 is below k, 128; give a stride of at least k
  [2]

No groups and no experts are no call.

  $ cubinet explain --op fp8_quantize --t 5 --g 0 --d 128 --arch sm_90a
  ! cubinet: explain: --g '0' is too small; give 1 or more
  [2]
  $ cubinet explain --op fp8_einsum --t 5 --g 0 --r 128 --d 128 --arch sm_90a
  ! cubinet: explain: --g '0' is too small; give 1 or more
  [2]
  $ cubinet explain --op fp8_grouped_gemm --m 1 --n 128 --k 128 --experts 0 --arch sm_90a
  ! cubinet: explain: --experts '0' is too small; give 1 or more
  [2]
  $ cubinet matrix --op fp8_quantize --m 5 --g 0 --d 128 --arch sm_90a
  ! cubinet: matrix: --g '0' is too small; give 1 or more
  [2]

One architecture where one is taken.

  $ for verb in 'explain --op fp8_gemm --m 1 --n 128 --k 128' 'matrix --op fp8_gemm --m 1 --n 128 --k 128' ls prune; do
  >   cubinet $verb --arch sm_90a,sm_100a; echo "exit $?"; done
  exit 2
  exit 2
  exit 2
  exit 2
  ! cubinet: explain: --arch 'sm_90a,sm_100a' is a list; explain takes one architecture
  ! cubinet: matrix: --arch 'sm_90a,sm_100a' is a list; matrix takes one architecture
  ! cubinet: ls: --arch 'sm_90a,sm_100a' is a list; ls takes one architecture
  ! cubinet: prune: --arch 'sm_90a,sm_100a' is a list; prune takes one architecture
