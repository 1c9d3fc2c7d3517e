Help of the tool and of every verb.

  $ cubinet help
  usage: cubinet [global options] VERB [options]

  Verbs:
    warm       build every kernel that a model needs
    check      say whether a warm would build anything
    shapes     list the layers of a model
    ls         list the cache
    show       decode one entry, or say how two keys differ
    stats      count entries, bytes, hits and misses by layer
    verify     check every entry of the cache
    prune      remove entries by rule
    pin        mark entries that eviction and prune must leave
    unpin      take the marks away
    pack       write one file for deployment
    unpack     store the entries of a pack
    explain    say which kernel a call would take, and why
    matrix     print the routing table over several M
    selftest   run every kernel on the GPU against the reference
    doctor     report what works here and how to mend what does not
    config     print every setting and where it came from
    version    print the versions
    help       print help

  Global options, before or after the verb:
    --cache DIR                 cache folder (default: CUBINET_CACHE, $XDG_CACHE_HOME/cubinet,
                                $HOME/.cache/cubinet)
    --base PATH                 read-only base layer below it, a folder or a pack; may be given
                                several times (default: CUBINET_BASES, a colon list)
    --fleet URL                 server that a fleet shares, redis://HOST[:PORT][/DB] or unix:///PATH
                                (default: CUBINET_FLEET, where a password is better kept)
    --json                      print JSON
    --quiet                     no progress and no notices on stderr
    --trust-folder              use a cache folder that is refused since others could write it or
                                replace it
    -h, --help                  this help
    --version                   the same as the verb version

  Exit codes: 0 done; 1 failed; 2 usage; 3 damage found, or coverage incomplete; 4 partly done.
  'cubinet help VERB' tells a verb's options.
  $ cubinet --help | cmp - <(cubinet help) && echo same
  same
  $ cubinet help warm
  usage: cubinet warm (--model CONFIG.json [--tp N] | --manifest FILE | --all) --arch ARCH[,ARCH] [options]

  Reads a model's config.json, derives its FP8 layers after sharding, enumerates every specialisation
  that the dispatcher can reach for M in 0..max-m, and builds what the cache does not hold. Needs
  NVRTC, no GPU. Builds run in child processes. Exits 3 when no kernel takes some of a layer's calls,
  4 when some kernels could not be built, 1 when none could.

  Model:
    --model CONFIG.json         a Hugging Face config.json
    --tp N                      tensor-parallel ranks (default: 1)
    --ep N                      expert-parallel ranks (default: experts are sharded by --tp)

  Request:
    --manifest FILE             shapes in place of a model: {"schema": "cubinet.manifest/1", "shapes":
                                [{"op", "layer", "n", "k", "groups"}]}; what --json shapes prints is
                                one
    --all                       every specialisation that any shape can reach under the profile
    --max-m M                   largest M of a call (default: 131072)
    --ops OP[,OP]               only these of fp8_gemm, fp8_quantize, fp8_einsum, fp8_grouped_gemm
                                (default: all that the layers need)
    --arch sm_80|sm_86|sm_87|sm_89|sm_90a|sm_100a|sm_103a|sm_110a|sm_120a|sm_121a
                                architectures, a comma list

  Building:
    -j, --jobs N                builds at once (default: one a core)
    --pin                       pin what was requested, so that eviction and prune leave it
    --push                      store all that was requested on the fleet's server, also what was
                                there before; exits 4 when it takes only a part, 1 when nothing

  Call profile: what decides a route besides the shape:
    --in bf16|fp16|fp32|e4m3    dtype of the activations (default: bf16)
    --out bf16|fp16|fp32        dtype of the output (default: bf16)
    --weight-scale fp32|ue8m0   storage of the weight scales (default: fp32)
    --scale-gran block|row      a weight scale covers 128x128, or 128 columns of one row (default:
                                block)
    --act-scale row|col|col4|packed-row|packed-col
                                activation scales that e4m3 input brings, or that fp8_quantize writes
                                (default: col4)
    --pow2                      fp32 activation scales are rounded up to a power of two
    --bias none|out|fp32        bias of the output's dtype or fp32 (default: none)
    --no-pdl                    no programmatic dependent launch
    --propagate                 non-finite activations become NaN codes
    --approx                    fp8_quantize divides by div.approx.ftz, as kernels built with fast
                                math do; fp32 scales only
    --sms S                     SMs of the device (default: the architecture's usual count)
    --max-sms S                 SMs that a call may use (default: all)
    --policy default|reference  guard table (default: CUBINET_POLICY, else default)
    --disable KERNEL[,KERNEL]   candidates to switch off (default: CUBINET_DISABLE)
    --enable KERNEL[,KERNEL]    candidates to switch on that are off by default (default:
                                CUBINET_ENABLE)
    --strict-route              refuse a fallback candidate in place of choosing it

  Global options, before or after the verb:
    --cache DIR                 cache folder (default: CUBINET_CACHE, $XDG_CACHE_HOME/cubinet,
                                $HOME/.cache/cubinet)
    --base PATH                 read-only base layer below it, a folder or a pack; may be given
                                several times (default: CUBINET_BASES, a colon list)
    --fleet URL                 server that a fleet shares, redis://HOST[:PORT][/DB] or unix:///PATH
                                (default: CUBINET_FLEET, where a password is better kept)
    --json                      print JSON
    --quiet                     no progress and no notices on stderr
    --trust-folder              use a cache folder that is refused since others could write it or
                                replace it
    -h, --help                  this help
    --version                   the same as the verb version
  $ cubinet warm --help | cmp - <(cubinet help warm) && echo same
  same
  $ cubinet help explain
  usage: cubinet explain --op OP EXTENTS --arch ARCH [options]

  The dispatcher's own decision for one call, launching nothing: each candidate with its verdict, the
  guard that refused it and the value that the guard saw. Extents: --m --n --k [--lda] for fp8_gemm;
  --t --k or --t --g --d for fp8_quantize; --t --g --r --d for fp8_einsum; --m --n --k --experts for
  fp8_grouped_gemm. Exits 1 when no candidate takes the call.

  Call:
    --op fp8_gemm|fp8_quantize|fp8_einsum|fp8_grouped_gemm
                                the operation
    --m NUMBER                  fp8_gemm, fp8_grouped_gemm: rows of A
    --t NUMBER                  fp8_quantize, fp8_einsum: rows of x
    --n NUMBER                  fp8_gemm, fp8_grouped_gemm: columns of the output
    --k NUMBER                  fp8_gemm, fp8_grouped_gemm: columns of A; fp8_quantize: columns of x
    --lda NUMBER                fp8_gemm: row stride of A in elements (default: k)
    --g NUMBER                  fp8_quantize, fp8_einsum: groups
    --d NUMBER                  fp8_quantize, fp8_einsum: columns of a group
    --r NUMBER                  fp8_einsum: columns of a group's output
    --experts NUMBER            fp8_grouped_gemm: experts
    --arch sm_80|sm_86|sm_87|sm_89|sm_90a|sm_100a|sm_103a|sm_110a|sm_120a|sm_121a
                                architecture

  Call profile: what decides a route besides the shape:
    --in bf16|fp16|fp32|e4m3    dtype of the activations (default: bf16)
    --out bf16|fp16|fp32        dtype of the output (default: bf16)
    --weight-scale fp32|ue8m0   storage of the weight scales (default: fp32)
    --scale-gran block|row      a weight scale covers 128x128, or 128 columns of one row (default:
                                block)
    --act-scale row|col|col4|packed-row|packed-col
                                activation scales that e4m3 input brings, or that fp8_quantize writes
                                (default: col4)
    --pow2                      fp32 activation scales are rounded up to a power of two
    --bias none|out|fp32        bias of the output's dtype or fp32 (default: none)
    --no-pdl                    no programmatic dependent launch
    --propagate                 non-finite activations become NaN codes
    --approx                    fp8_quantize divides by div.approx.ftz, as kernels built with fast
                                math do; fp32 scales only
    --sms S                     SMs of the device (default: the architecture's usual count)
    --max-sms S                 SMs that a call may use (default: all)
    --policy default|reference  guard table (default: CUBINET_POLICY, else default)
    --disable KERNEL[,KERNEL]   candidates to switch off (default: CUBINET_DISABLE)
    --enable KERNEL[,KERNEL]    candidates to switch on that are off by default (default:
                                CUBINET_ENABLE)
    --strict-route              refuse a fallback candidate in place of choosing it

  Global options, before or after the verb:
    --cache DIR                 cache folder (default: CUBINET_CACHE, $XDG_CACHE_HOME/cubinet,
                                $HOME/.cache/cubinet)
    --base PATH                 read-only base layer below it, a folder or a pack; may be given
                                several times (default: CUBINET_BASES, a colon list)
    --fleet URL                 server that a fleet shares, redis://HOST[:PORT][/DB] or unix:///PATH
                                (default: CUBINET_FLEET, where a password is better kept)
    --json                      print JSON
    --quiet                     no progress and no notices on stderr
    --trust-folder              use a cache folder that is refused since others could write it or
                                replace it
    -h, --help                  this help
    --version                   the same as the verb version
  $ cubinet -h ls
  usage: cubinet ls [options]

  One line for each entry that verifies, the writable layer first. Exits 3 when damaged entries were
  met.

  Selection:
    --op OP                     only this operation
    --arch sm_80|sm_86|sm_87|sm_89|sm_90a|sm_100a|sm_103a|sm_110a|sm_120a|sm_121a
                                only this architecture
    --kernel KERNEL             only this candidate
    --sort used|size|created    last used, largest or newest first (default: by operation, kernel,
                                architecture and key)

  Global options, before or after the verb:
    --cache DIR                 cache folder (default: CUBINET_CACHE, $XDG_CACHE_HOME/cubinet,
                                $HOME/.cache/cubinet)
    --base PATH                 read-only base layer below it, a folder or a pack; may be given
                                several times (default: CUBINET_BASES, a colon list)
    --fleet URL                 server that a fleet shares, redis://HOST[:PORT][/DB] or unix:///PATH
                                (default: CUBINET_FLEET, where a password is better kept)
    --json                      print JSON
    --quiet                     no progress and no notices on stderr
    --trust-folder              use a cache folder that is refused since others could write it or
                                replace it
    -h, --help                  this help
    --version                   the same as the verb version
  $ for verb in check shapes show stats verify prune pin unpin matrix selftest doctor config version help; do
  >   cubinet help $verb | head -n 1
  > done
  usage: cubinet check (--model CONFIG.json [--tp N] | --manifest FILE | --all) --arch ARCH[,ARCH] [options]
  usage: cubinet shapes --model CONFIG.json [--tp N] [--ep N]
  usage: cubinet show KEY [--cubin FILE] [--source] [--resources] | KEY1 KEY2
  usage: cubinet stats [--prometheus]
  usage: cubinet verify [--repair]
  usage: cubinet prune RULES [--compact] [--dry-run]
  usage: cubinet pin KEY... | (--model CONFIG.json [--tp N] | --manifest FILE | --all) --arch ARCH[,ARCH] [options]
  usage: cubinet unpin KEY... | (--model CONFIG.json [--tp N] | --manifest FILE | --all) --arch ARCH[,ARCH] [options]
  usage: cubinet matrix --op OP --m M[,M] EXTENTS --arch ARCH [options]
  usage: cubinet selftest [--op OP]
  usage: cubinet doctor
  usage: cubinet config
  usage: cubinet version
  usage: cubinet help [VERB] [--man | --completion SHELL]

The man page and the completion script in the tree are what the option tables give.

  $ cubinet help --man | cmp - $TOOLS/man/cubinet.1 && echo same
  same
  $ cubinet help --completion bash | cmp - $TOOLS/man/cubinet.bash && echo same
  same

Completion.

  $ cubinet help --completion bash > completion.bash && bash -n completion.bash && source completion.bash
  > ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _cubinet; echo "${COMPREPLY[*]}"; }
  > ask cubinet v
  > ask cubinet --cache x ver
  > ask cubinet warm --weight-scale ''
  > ask cubinet explain --op fp8_g
  > ask cubinet ls --so
  > ask cubinet help expl
  > ask cubinet --ca
  > ask cubinet prune --un
  > ask cubinet show --source --
  verify version
  verify version
  fp32 ue8m0
  fp8_gemm fp8_grouped_gemm
  --sort
  explain
  --cache
  --unpinned-too
  --cubin --source --resources --cache --base --fleet --json --quiet --trust-folder --help --version
