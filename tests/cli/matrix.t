The routing table of policy reference on sm_90a.

  $ matrix() { cubinet matrix --op fp8_gemm --m 0,1,8,31,32,64,850 --arch sm_90a --policy reference "$@"; }
  > matrix --n 7168 --k 2048
  > for scale in fp32 ue8m0; do for out in bf16 fp16 fp32; do for nk in "7168 2048" "7160 2048" "7168 2000" "33 130"; do
  >   set -- $nk; matrix --n $1 --k $2 --out $out --weight-scale $scale
  > done; done; done
  call: fp8_gemm sm_90a n=7168 k=2048
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=reference
  M    all on   no tcgen05  no swap_ab_fused  no swap_ab  no wgmma  no generic
  0    noop     noop        noop              noop        noop      noop
  1    swap_ab  swap_ab     swap_ab           generic     swap_ab   swap_ab
  8    swap_ab  swap_ab     swap_ab           generic     swap_ab   swap_ab
  31   swap_ab  swap_ab     swap_ab           generic     swap_ab   swap_ab
  32   wgmma    wgmma       wgmma             wgmma       generic   wgmma
  64   wgmma    wgmma       wgmma             wgmma       generic   wgmma
  850  wgmma    wgmma       wgmma             wgmma       generic   wgmma
  call: fp8_gemm sm_90a n=7168 k=2048
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=reference
  M    all on   no tcgen05  no swap_ab_fused  no swap_ab  no wgmma  no generic
  0    noop     noop        noop              noop        noop      noop
  1    swap_ab  swap_ab     swap_ab           generic     swap_ab   swap_ab
  8    swap_ab  swap_ab     swap_ab           generic     swap_ab   swap_ab
  31   swap_ab  swap_ab     swap_ab           generic     swap_ab   swap_ab
  32   wgmma    wgmma       wgmma             wgmma       generic   wgmma
  64   wgmma    wgmma       wgmma             wgmma       generic   wgmma
  850  wgmma    wgmma       wgmma             wgmma       generic   wgmma
  call: fp8_gemm sm_90a n=7160 k=2048
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=reference
  M    all on   no tcgen05  no swap_ab_fused  no swap_ab  no wgmma  no generic
  0    noop     noop        noop              noop        noop      noop
  1    generic  generic     generic           generic     generic   none
  8    generic  generic     generic           generic     generic   none
  31   generic  generic     generic           generic     generic   none
  32   generic  generic     generic           generic     generic   none
  64   generic  generic     generic           generic     generic   none
  850  generic  generic     generic           generic     generic   none
  call: fp8_gemm sm_90a n=7168 k=2000
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=reference
  M    all on   no tcgen05  no swap_ab_fused  no swap_ab  no wgmma  no generic
  0    noop     noop        noop              noop        noop      noop
  1    generic  generic     generic           generic     generic   none
  8    generic  generic     generic           generic     generic   none
  31   generic  generic     generic           generic     generic   none
  32   generic  generic     generic           generic     generic   none
  64   generic  generic     generic           generic     generic   none
  850  generic  generic     generic           generic     generic   none
  call: fp8_gemm sm_90a n=33 k=130
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=reference
  M    all on   no tcgen05  no swap_ab_fused  no swap_ab  no wgmma  no generic
  0    noop     noop        noop              noop        noop      noop
  1    generic  generic     generic           generic     generic   none
  8    generic  generic     generic           generic     generic   none
  31   generic  generic     generic           generic     generic   none
  32   generic  generic     generic           generic     generic   none
  64   generic  generic     generic           generic     generic   none
  850  generic  generic     generic           generic     generic   none
  call: fp8_gemm sm_90a n=7168 k=2048
  profile: in=bf16 out=fp16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=reference
  M    all on   no tcgen05  no swap_ab_fused  no swap_ab  no wgmma  no generic
  0    noop     noop        noop              noop        noop      noop
  1    generic  generic     generic           generic     generic   none
  8    generic  generic     generic           generic     generic   none
  31   generic  generic     generic           generic     generic   none
  32   generic  generic     generic           generic     generic   none
  64   generic  generic     generic           generic     generic   none
  850  generic  generic     generic           generic     generic   none
  call: fp8_gemm sm_90a n=7160 k=2048
  profile: in=bf16 out=fp16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=reference
  M    all on   no tcgen05  no swap_ab_fused  no swap_ab  no wgmma  no generic
  0    noop     noop        noop              noop        noop      noop
  1    generic  generic     generic           generic     generic   none
  8    generic  generic     generic           generic     generic   none
  31   generic  generic     generic           generic     generic   none
  32   generic  generic     generic           generic     generic   none
  64   generic  generic     generic           generic     generic   none
  850  generic  generic     generic           generic     generic   none
  call: fp8_gemm sm_90a n=7168 k=2000
  profile: in=bf16 out=fp16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=reference
  M    all on   no tcgen05  no swap_ab_fused  no swap_ab  no wgmma  no generic
  0    noop     noop        noop              noop        noop      noop
  1    generic  generic     generic           generic     generic   none
  8    generic  generic     generic           generic     generic   none
  31   generic  generic     generic           generic     generic   none
  32   generic  generic     generic           generic     generic   none
  64   generic  generic     generic           generic     generic   none
  850  generic  generic     generic           generic     generic   none
  call: fp8_gemm sm_90a n=33 k=130
  profile: in=bf16 out=fp16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=reference
  M    all on   no tcgen05  no swap_ab_fused  no swap_ab  no wgmma  no generic
  0    noop     noop        noop              noop        noop      noop
  1    generic  generic     generic           generic     generic   none
  8    generic  generic     generic           generic     generic   none
  31   generic  generic     generic           generic     generic   none
  32   generic  generic     generic           generic     generic   none
  64   generic  generic     generic           generic     generic   none
  850  generic  generic     generic           generic     generic   none
  call: fp8_gemm sm_90a n=7168 k=2048
  profile: in=bf16 out=fp32 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=reference
  M    all on   no tcgen05  no swap_ab_fused  no swap_ab  no wgmma  no generic
  0    noop     noop        noop              noop        noop      noop
  1    generic  generic     generic           generic     generic   none
  8    generic  generic     generic           generic     generic   none
  31   generic  generic     generic           generic     generic   none
  32   generic  generic     generic           generic     generic   none
  64   generic  generic     generic           generic     generic   none
  850  generic  generic     generic           generic     generic   none
  call: fp8_gemm sm_90a n=7160 k=2048
  profile: in=bf16 out=fp32 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=reference
  M    all on   no tcgen05  no swap_ab_fused  no swap_ab  no wgmma  no generic
  0    noop     noop        noop              noop        noop      noop
  1    generic  generic     generic           generic     generic   none
  8    generic  generic     generic           generic     generic   none
  31   generic  generic     generic           generic     generic   none
  32   generic  generic     generic           generic     generic   none
  64   generic  generic     generic           generic     generic   none
  850  generic  generic     generic           generic     generic   none
  call: fp8_gemm sm_90a n=7168 k=2000
  profile: in=bf16 out=fp32 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=reference
  M    all on   no tcgen05  no swap_ab_fused  no swap_ab  no wgmma  no generic
  0    noop     noop        noop              noop        noop      noop
  1    generic  generic     generic           generic     generic   none
  8    generic  generic     generic           generic     generic   none
  31   generic  generic     generic           generic     generic   none
  32   generic  generic     generic           generic     generic   none
  64   generic  generic     generic           generic     generic   none
  850  generic  generic     generic           generic     generic   none
  call: fp8_gemm sm_90a n=33 k=130
  profile: in=bf16 out=fp32 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=reference
  M    all on   no tcgen05  no swap_ab_fused  no swap_ab  no wgmma  no generic
  0    noop     noop        noop              noop        noop      noop
  1    generic  generic     generic           generic     generic   none
  8    generic  generic     generic           generic     generic   none
  31   generic  generic     generic           generic     generic   none
  32   generic  generic     generic           generic     generic   none
  64   generic  generic     generic           generic     generic   none
  850  generic  generic     generic           generic     generic   none
  call: fp8_gemm sm_90a n=7168 k=2048
  profile: in=bf16 out=bf16 weight-scale=ue8m0 scale-gran=block act-scale=col4 bias=none policy=reference
  M    all on   no tcgen05  no swap_ab_fused  no swap_ab  no wgmma  no generic
  0    noop     noop        noop              noop        noop      noop
  1    swap_ab  swap_ab     swap_ab           generic     swap_ab   swap_ab
  8    swap_ab  swap_ab     swap_ab           generic     swap_ab   swap_ab
  31   swap_ab  swap_ab     swap_ab           generic     swap_ab   swap_ab
  32   wgmma    wgmma       wgmma             wgmma       generic   wgmma
  64   wgmma    wgmma       wgmma             wgmma       generic   wgmma
  850  wgmma    wgmma       wgmma             wgmma       generic   wgmma
  call: fp8_gemm sm_90a n=7160 k=2048
  profile: in=bf16 out=bf16 weight-scale=ue8m0 scale-gran=block act-scale=col4 bias=none policy=reference
  M    all on   no tcgen05  no swap_ab_fused  no swap_ab  no wgmma  no generic
  0    noop     noop        noop              noop        noop      noop
  1    generic  generic     generic           generic     generic   none
  8    generic  generic     generic           generic     generic   none
  31   generic  generic     generic           generic     generic   none
  32   generic  generic     generic           generic     generic   none
  64   generic  generic     generic           generic     generic   none
  850  generic  generic     generic           generic     generic   none
  call: fp8_gemm sm_90a n=7168 k=2000
  profile: in=bf16 out=bf16 weight-scale=ue8m0 scale-gran=block act-scale=col4 bias=none policy=reference
  M    all on   no tcgen05  no swap_ab_fused  no swap_ab  no wgmma  no generic
  0    noop     noop        noop              noop        noop      noop
  1    generic  generic     generic           generic     generic   none
  8    generic  generic     generic           generic     generic   none
  31   generic  generic     generic           generic     generic   none
  32   generic  generic     generic           generic     generic   none
  64   generic  generic     generic           generic     generic   none
  850  generic  generic     generic           generic     generic   none
  call: fp8_gemm sm_90a n=33 k=130
  profile: in=bf16 out=bf16 weight-scale=ue8m0 scale-gran=block act-scale=col4 bias=none policy=reference
  M    all on   no tcgen05  no swap_ab_fused  no swap_ab  no wgmma  no generic
  0    noop     noop        noop              noop        noop      noop
  1    generic  generic     generic           generic     generic   none
  8    generic  generic     generic           generic     generic   none
  31   generic  generic     generic           generic     generic   none
  32   generic  generic     generic           generic     generic   none
  64   generic  generic     generic           generic     generic   none
  850  generic  generic     generic           generic     generic   none
  call: fp8_gemm sm_90a n=7168 k=2048
  profile: in=bf16 out=fp16 weight-scale=ue8m0 scale-gran=block act-scale=col4 bias=none policy=reference
  M    all on   no tcgen05  no swap_ab_fused  no swap_ab  no wgmma  no generic
  0    noop     noop        noop              noop        noop      noop
  1    generic  generic     generic           generic     generic   none
  8    generic  generic     generic           generic     generic   none
  31   generic  generic     generic           generic     generic   none
  32   generic  generic     generic           generic     generic   none
  64   generic  generic     generic           generic     generic   none
  850  generic  generic     generic           generic     generic   none
  call: fp8_gemm sm_90a n=7160 k=2048
  profile: in=bf16 out=fp16 weight-scale=ue8m0 scale-gran=block act-scale=col4 bias=none policy=reference
  M    all on   no tcgen05  no swap_ab_fused  no swap_ab  no wgmma  no generic
  0    noop     noop        noop              noop        noop      noop
  1    generic  generic     generic           generic     generic   none
  8    generic  generic     generic           generic     generic   none
  31   generic  generic     generic           generic     generic   none
  32   generic  generic     generic           generic     generic   none
  64   generic  generic     generic           generic     generic   none
  850  generic  generic     generic           generic     generic   none
  call: fp8_gemm sm_90a n=7168 k=2000
  profile: in=bf16 out=fp16 weight-scale=ue8m0 scale-gran=block act-scale=col4 bias=none policy=reference
  M    all on   no tcgen05  no swap_ab_fused  no swap_ab  no wgmma  no generic
  0    noop     noop        noop              noop        noop      noop
  1    generic  generic     generic           generic     generic   none
  8    generic  generic     generic           generic     generic   none
  31   generic  generic     generic           generic     generic   none
  32   generic  generic     generic           generic     generic   none
  64   generic  generic     generic           generic     generic   none
  850  generic  generic     generic           generic     generic   none
  call: fp8_gemm sm_90a n=33 k=130
  profile: in=bf16 out=fp16 weight-scale=ue8m0 scale-gran=block act-scale=col4 bias=none policy=reference
  M    all on   no tcgen05  no swap_ab_fused  no swap_ab  no wgmma  no generic
  0    noop     noop        noop              noop        noop      noop
  1    generic  generic     generic           generic     generic   none
  8    generic  generic     generic           generic     generic   none
  31   generic  generic     generic           generic     generic   none
  32   generic  generic     generic           generic     generic   none
  64   generic  generic     generic           generic     generic   none
  850  generic  generic     generic           generic     generic   none
  call: fp8_gemm sm_90a n=7168 k=2048
  profile: in=bf16 out=fp32 weight-scale=ue8m0 scale-gran=block act-scale=col4 bias=none policy=reference
  M    all on   no tcgen05  no swap_ab_fused  no swap_ab  no wgmma  no generic
  0    noop     noop        noop              noop        noop      noop
  1    generic  generic     generic           generic     generic   none
  8    generic  generic     generic           generic     generic   none
  31   generic  generic     generic           generic     generic   none
  32   generic  generic     generic           generic     generic   none
  64   generic  generic     generic           generic     generic   none
  850  generic  generic     generic           generic     generic   none
  call: fp8_gemm sm_90a n=7160 k=2048
  profile: in=bf16 out=fp32 weight-scale=ue8m0 scale-gran=block act-scale=col4 bias=none policy=reference
  M    all on   no tcgen05  no swap_ab_fused  no swap_ab  no wgmma  no generic
  0    noop     noop        noop              noop        noop      noop
  1    generic  generic     generic           generic     generic   none
  8    generic  generic     generic           generic     generic   none
  31   generic  generic     generic           generic     generic   none
  32   generic  generic     generic           generic     generic   none
  64   generic  generic     generic           generic     generic   none
  850  generic  generic     generic           generic     generic   none
  call: fp8_gemm sm_90a n=7168 k=2000
  profile: in=bf16 out=fp32 weight-scale=ue8m0 scale-gran=block act-scale=col4 bias=none policy=reference
  M    all on   no tcgen05  no swap_ab_fused  no swap_ab  no wgmma  no generic
  0    noop     noop        noop              noop        noop      noop
  1    generic  generic     generic           generic     generic   none
  8    generic  generic     generic           generic     generic   none
  31   generic  generic     generic           generic     generic   none
  32   generic  generic     generic           generic     generic   none
  64   generic  generic     generic           generic     generic   none
  850  generic  generic     generic           generic     generic   none
  call: fp8_gemm sm_90a n=33 k=130
  profile: in=bf16 out=fp32 weight-scale=ue8m0 scale-gran=block act-scale=col4 bias=none policy=reference
  M    all on   no tcgen05  no swap_ab_fused  no swap_ab  no wgmma  no generic
  0    noop     noop        noop              noop        noop      noop
  1    generic  generic     generic           generic     generic   none
  8    generic  generic     generic           generic     generic   none
  31   generic  generic     generic           generic     generic   none
  32   generic  generic     generic           generic     generic   none
  64   generic  generic     generic           generic     generic   none
  850  generic  generic     generic           generic     generic   none

As JSON.

  $ cubinet --json matrix --op fp8_gemm --m 0,1,32 --n 7168 --k 2048 --arch sm_90a --policy reference
  {
    "schema": "cubinet.matrix/1",
    "call": {
      "op": "fp8_gemm",
      "arch": "sm_90a",
      "n": 7168,
      "k": 2048
    },
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
      "policy": "reference",
      "disable": null,
      "enable": null,
      "strict_route": false
    },
    "rows": [
      {
        "m": 0,
        "disabled": null,
        "chosen": "noop"
      },
      {
        "m": 0,
        "disabled": "tcgen05",
        "chosen": "noop"
      },
      {
        "m": 0,
        "disabled": "swap_ab_fused",
        "chosen": "noop"
      },
      {
        "m": 0,
        "disabled": "swap_ab",
        "chosen": "noop"
      },
      {
        "m": 0,
        "disabled": "wgmma",
        "chosen": "noop"
      },
      {
        "m": 0,
        "disabled": "generic",
        "chosen": "noop"
      },
      {
        "m": 1,
        "disabled": null,
        "chosen": "swap_ab"
      },
      {
        "m": 1,
        "disabled": "tcgen05",
        "chosen": "swap_ab"
      },
      {
        "m": 1,
        "disabled": "swap_ab_fused",
        "chosen": "swap_ab"
      },
      {
        "m": 1,
        "disabled": "swap_ab",
        "chosen": "generic"
      },
      {
        "m": 1,
        "disabled": "wgmma",
        "chosen": "swap_ab"
      },
      {
        "m": 1,
        "disabled": "generic",
        "chosen": "swap_ab"
      },
      {
        "m": 32,
        "disabled": null,
        "chosen": "wgmma"
      },
      {
        "m": 32,
        "disabled": "tcgen05",
        "chosen": "wgmma"
      },
      {
        "m": 32,
        "disabled": "swap_ab_fused",
        "chosen": "wgmma"
      },
      {
        "m": 32,
        "disabled": "swap_ab",
        "chosen": "wgmma"
      },
      {
        "m": 32,
        "disabled": "wgmma",
        "chosen": "generic"
      },
      {
        "m": 32,
        "disabled": "generic",
        "chosen": "wgmma"
      }
    ]
  }

What is switched off by option stays off in every column.

  $ cubinet matrix --op fp8_gemm --m 8,64 --n 7168 --k 2048 --arch sm_90a --policy reference --disable wgmma
  call: fp8_gemm sm_90a n=7168 k=2048
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=reference disable=wgmma
  M   all on   no tcgen05  no swap_ab_fused  no swap_ab  no wgmma  no generic
  8   swap_ab  swap_ab     swap_ab           generic     swap_ab   swap_ab
  64  generic  generic     generic           generic     generic   none

sm_100a with tcgen05 on: bf16 out and K >= 256, whatever the scales.

  $ for more in "--k 256" "--k 256 --weight-scale ue8m0" "--k 256 --out fp16" "--k 128"; do
  >   cubinet matrix --op fp8_gemm --m 0,1,64 --n 7168 --arch sm_100a --enable tcgen05 $more
  > done
  call: fp8_gemm sm_100a n=7168 k=256
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default enable=tcgen05
  M   all on   no tcgen05  no swap_ab_fused  no swap_ab  no wgmma  no generic
  0   noop     noop        noop              noop        noop      noop
  1   tcgen05  generic     tcgen05           tcgen05     tcgen05   tcgen05
  64  tcgen05  generic     tcgen05           tcgen05     tcgen05   tcgen05
  call: fp8_gemm sm_100a n=7168 k=256
  profile: in=bf16 out=bf16 weight-scale=ue8m0 scale-gran=block act-scale=col4 bias=none policy=default enable=tcgen05
  M   all on   no tcgen05  no swap_ab_fused  no swap_ab  no wgmma  no generic
  0   noop     noop        noop              noop        noop      noop
  1   tcgen05  generic     tcgen05           tcgen05     tcgen05   tcgen05
  64  tcgen05  generic     tcgen05           tcgen05     tcgen05   tcgen05
  call: fp8_gemm sm_100a n=7168 k=256
  profile: in=bf16 out=fp16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default enable=tcgen05
  M   all on   no tcgen05  no swap_ab_fused  no swap_ab  no wgmma  no generic
  0   noop     noop        noop              noop        noop      noop
  1   generic  generic     generic           generic     generic   none
  64  generic  generic     generic           generic     generic   none
  call: fp8_gemm sm_100a n=7168 k=128
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default enable=tcgen05
  M   all on   no tcgen05  no swap_ab_fused  no swap_ab  no wgmma  no generic
  0   noop     noop        noop              noop        noop      noop
  1   generic  generic     generic           generic     generic   none
  64  generic  generic     generic           generic     generic   none

Quantisation, flat and with groups; an operation without a kernel.

  $ cubinet matrix --op fp8_quantize --m 0,1,64 --k 7168 --arch sm_90a
  call: fp8_quantize sm_90a k=7168
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=col4 bias=none policy=default
  M   all on  no vector  no scalar
  0   noop    noop       noop
  1   vector  scalar     vector
  64  vector  scalar     vector
  $ cubinet matrix --op fp8_quantize --m 0,1,64 --g 8 --d 4096 --arch sm_90a --act-scale row
  call: fp8_quantize sm_90a g=8 d=4096
  profile: in=bf16 out=bf16 weight-scale=fp32 scale-gran=block act-scale=row bias=none policy=default
  M   all on  no vector  no scalar
  0   noop    noop       noop
  1   vector  scalar     vector
  64  vector  scalar     vector
  $ cubinet matrix --op fp8_einsum --m 1 --g 8 --r 64 --d 128 --arch sm_90a
  ! cubinet: matrix: fp8_einsum has no kernel in this release
  [1]
