# bash completion for cubinet: source <(cubinet help --completion bash)
_cubinet()
{
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} verb= options= i
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --cache|--base) ((i++)) ;;
        -*) ;;
        *) verb=${COMP_WORDS[i]}; break ;;
        esac
    done
    case $verb:$before in
    *:--cache) COMPREPLY=($(compgen -d -- "$word")) ;;
    *:--base) COMPREPLY=($(compgen -d -- "$word")) ;;
    warm:--model) COMPREPLY=($(compgen -f -- "$word")) ;;
    warm:--tp) COMPREPLY=() ;;
    warm:--ep) COMPREPLY=() ;;
    warm:--manifest) COMPREPLY=($(compgen -f -- "$word")) ;;
    warm:--max-m) COMPREPLY=() ;;
    warm:--ops) COMPREPLY=() ;;
    warm:--arch) COMPREPLY=($(compgen -W 'sm_80 sm_86 sm_87 sm_89 sm_90a sm_100a sm_103a sm_110a sm_120a sm_121a' -- "$word")) ;;
    warm:--jobs) COMPREPLY=() ;;
    warm:--in) COMPREPLY=($(compgen -W 'bf16 fp16 fp32 e4m3' -- "$word")) ;;
    warm:--out) COMPREPLY=($(compgen -W 'bf16 fp16 fp32' -- "$word")) ;;
    warm:--weight-scale) COMPREPLY=($(compgen -W 'fp32 ue8m0' -- "$word")) ;;
    warm:--scale-gran) COMPREPLY=($(compgen -W 'block row' -- "$word")) ;;
    warm:--act-scale) COMPREPLY=($(compgen -W 'row col col4 packed-row packed-col' -- "$word")) ;;
    warm:--bias) COMPREPLY=($(compgen -W 'none out fp32' -- "$word")) ;;
    warm:--sms) COMPREPLY=() ;;
    warm:--max-sms) COMPREPLY=() ;;
    warm:--policy) COMPREPLY=($(compgen -W 'default reference' -- "$word")) ;;
    warm:--disable) COMPREPLY=() ;;
    warm:--enable) COMPREPLY=() ;;
    check:--model) COMPREPLY=($(compgen -f -- "$word")) ;;
    check:--tp) COMPREPLY=() ;;
    check:--ep) COMPREPLY=() ;;
    check:--manifest) COMPREPLY=($(compgen -f -- "$word")) ;;
    check:--max-m) COMPREPLY=() ;;
    check:--ops) COMPREPLY=() ;;
    check:--arch) COMPREPLY=($(compgen -W 'sm_80 sm_86 sm_87 sm_89 sm_90a sm_100a sm_103a sm_110a sm_120a sm_121a' -- "$word")) ;;
    check:--in) COMPREPLY=($(compgen -W 'bf16 fp16 fp32 e4m3' -- "$word")) ;;
    check:--out) COMPREPLY=($(compgen -W 'bf16 fp16 fp32' -- "$word")) ;;
    check:--weight-scale) COMPREPLY=($(compgen -W 'fp32 ue8m0' -- "$word")) ;;
    check:--scale-gran) COMPREPLY=($(compgen -W 'block row' -- "$word")) ;;
    check:--act-scale) COMPREPLY=($(compgen -W 'row col col4 packed-row packed-col' -- "$word")) ;;
    check:--bias) COMPREPLY=($(compgen -W 'none out fp32' -- "$word")) ;;
    check:--sms) COMPREPLY=() ;;
    check:--max-sms) COMPREPLY=() ;;
    check:--policy) COMPREPLY=($(compgen -W 'default reference' -- "$word")) ;;
    check:--disable) COMPREPLY=() ;;
    check:--enable) COMPREPLY=() ;;
    shapes:--model) COMPREPLY=($(compgen -f -- "$word")) ;;
    shapes:--tp) COMPREPLY=() ;;
    shapes:--ep) COMPREPLY=() ;;
    ls:--op) COMPREPLY=() ;;
    ls:--arch) COMPREPLY=($(compgen -W 'sm_80 sm_86 sm_87 sm_89 sm_90a sm_100a sm_103a sm_110a sm_120a sm_121a' -- "$word")) ;;
    ls:--kernel) COMPREPLY=() ;;
    ls:--sort) COMPREPLY=($(compgen -W 'used size created' -- "$word")) ;;
    explain:--op) COMPREPLY=($(compgen -W 'fp8_gemm fp8_quantize fp8_einsum fp8_grouped_gemm' -- "$word")) ;;
    explain:--m) COMPREPLY=() ;;
    explain:--t) COMPREPLY=() ;;
    explain:--n) COMPREPLY=() ;;
    explain:--k) COMPREPLY=() ;;
    explain:--lda) COMPREPLY=() ;;
    explain:--g) COMPREPLY=() ;;
    explain:--d) COMPREPLY=() ;;
    explain:--r) COMPREPLY=() ;;
    explain:--experts) COMPREPLY=() ;;
    explain:--arch) COMPREPLY=($(compgen -W 'sm_80 sm_86 sm_87 sm_89 sm_90a sm_100a sm_103a sm_110a sm_120a sm_121a' -- "$word")) ;;
    explain:--in) COMPREPLY=($(compgen -W 'bf16 fp16 fp32 e4m3' -- "$word")) ;;
    explain:--out) COMPREPLY=($(compgen -W 'bf16 fp16 fp32' -- "$word")) ;;
    explain:--weight-scale) COMPREPLY=($(compgen -W 'fp32 ue8m0' -- "$word")) ;;
    explain:--scale-gran) COMPREPLY=($(compgen -W 'block row' -- "$word")) ;;
    explain:--act-scale) COMPREPLY=($(compgen -W 'row col col4 packed-row packed-col' -- "$word")) ;;
    explain:--bias) COMPREPLY=($(compgen -W 'none out fp32' -- "$word")) ;;
    explain:--sms) COMPREPLY=() ;;
    explain:--max-sms) COMPREPLY=() ;;
    explain:--policy) COMPREPLY=($(compgen -W 'default reference' -- "$word")) ;;
    explain:--disable) COMPREPLY=() ;;
    explain:--enable) COMPREPLY=() ;;
    matrix:--op) COMPREPLY=($(compgen -W 'fp8_gemm fp8_quantize fp8_einsum fp8_grouped_gemm' -- "$word")) ;;
    matrix:--m) COMPREPLY=() ;;
    matrix:--n) COMPREPLY=() ;;
    matrix:--k) COMPREPLY=() ;;
    matrix:--lda) COMPREPLY=() ;;
    matrix:--g) COMPREPLY=() ;;
    matrix:--d) COMPREPLY=() ;;
    matrix:--r) COMPREPLY=() ;;
    matrix:--experts) COMPREPLY=() ;;
    matrix:--arch) COMPREPLY=($(compgen -W 'sm_80 sm_86 sm_87 sm_89 sm_90a sm_100a sm_103a sm_110a sm_120a sm_121a' -- "$word")) ;;
    matrix:--in) COMPREPLY=($(compgen -W 'bf16 fp16 fp32 e4m3' -- "$word")) ;;
    matrix:--out) COMPREPLY=($(compgen -W 'bf16 fp16 fp32' -- "$word")) ;;
    matrix:--weight-scale) COMPREPLY=($(compgen -W 'fp32 ue8m0' -- "$word")) ;;
    matrix:--scale-gran) COMPREPLY=($(compgen -W 'block row' -- "$word")) ;;
    matrix:--act-scale) COMPREPLY=($(compgen -W 'row col col4 packed-row packed-col' -- "$word")) ;;
    matrix:--bias) COMPREPLY=($(compgen -W 'none out fp32' -- "$word")) ;;
    matrix:--sms) COMPREPLY=() ;;
    matrix:--max-sms) COMPREPLY=() ;;
    matrix:--policy) COMPREPLY=($(compgen -W 'default reference' -- "$word")) ;;
    matrix:--disable) COMPREPLY=() ;;
    matrix:--enable) COMPREPLY=() ;;
    selftest:--op) COMPREPLY=($(compgen -W 'fp8_gemm fp8_quantize' -- "$word")) ;;
    help:--completion) COMPREPLY=($(compgen -W 'bash' -- "$word")) ;;
    *)
    case $verb in
    warm) options=' --model --tp --ep --manifest --all --max-m --ops --arch --jobs --in --out --weight-scale --scale-gran --act-scale --pow2 --bias --no-pdl --propagate --approx --sms --max-sms --policy --disable --enable --strict-route --cache --base --json --quiet --trust-folder --help --version' ;;
    check) options=' --model --tp --ep --manifest --all --max-m --ops --arch --in --out --weight-scale --scale-gran --act-scale --pow2 --bias --no-pdl --propagate --approx --sms --max-sms --policy --disable --enable --strict-route --cache --base --json --quiet --trust-folder --help --version' ;;
    shapes) options=' --model --tp --ep --cache --base --json --quiet --trust-folder --help --version' ;;
    ls) options=' --op --arch --kernel --sort --cache --base --json --quiet --trust-folder --help --version' ;;
    verify) options=' --repair --dry-run --cache --base --json --quiet --trust-folder --help --version' ;;
    explain) options=' --op --m --t --n --k --lda --g --d --r --experts --arch --in --out --weight-scale --scale-gran --act-scale --pow2 --bias --no-pdl --propagate --approx --sms --max-sms --policy --disable --enable --strict-route --cache --base --json --quiet --trust-folder --help --version' ;;
    matrix) options=' --op --m --n --k --lda --g --d --r --experts --arch --in --out --weight-scale --scale-gran --act-scale --pow2 --bias --no-pdl --propagate --approx --sms --max-sms --policy --disable --enable --strict-route --cache --base --json --quiet --trust-folder --help --version' ;;
    selftest) options=' --op --cache --base --json --quiet --trust-folder --help --version' ;;
    doctor) options=' --cache --base --json --quiet --trust-folder --help --version' ;;
    config) options=' --cache --base --json --quiet --trust-folder --help --version' ;;
    version) options=' --cache --base --json --quiet --trust-folder --help --version' ;;
    help) options='warm check shapes ls verify explain matrix selftest doctor config version help --man --completion --cache --base --json --quiet --trust-folder --help --version' ;;
    *) options='warm check shapes ls verify explain matrix selftest doctor config version help --cache --base --json --quiet --trust-folder --help --version' ;;
    esac
    COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
    esac
}
complete -F _cubinet cubinet
