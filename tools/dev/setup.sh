# Shared by tools/dev/check and tools/dev/quickstart; sourced by bash, from the top of the source tree.
#
# Sees to the build's needs: Debian packages, and NVRTC with its headers from a CUDA toolkit or, where there is none (or
# with CUBINET_NO_TOOLKIT=1), from NVIDIA's Python wheels. CUBINET_BUILD names another build folder than build/.
# shellcheck shell=bash

JOBS=$(nproc)

step() {
    printf '== %s (%ss)\n' "$*" "$SECONDS"
}

die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

has_program() {
    command -v "$1" >/dev/null 2>&1
}

has_library() {
    has_program pkg-config && pkg-config --exists "$1"
}

# Prints the Debian packages that are missing; "$1" is "tests" where the tests are built, "fleet" where those of the
# fleet tier are among them.
list_missing_packages() {
    local need
    for need in gcc:gcc cmake:cmake make:make pkg-config:pkg-config python3:python3; do
        has_program "${need%%:*}" || echo "${need#*:}"
    done
    for need in lmdb:liblmdb-dev nettle:nettle-dev libxxhash:libxxhash-dev jansson:libjansson-dev popt:libpopt-dev; do
        has_library "${need%%:*}" || echo "${need#*:}"
    done
    [ -e /usr/include/stdlib.h ] || echo libc6-dev
    [ "$1" != program ] || return 0
    has_library check || echo check
    for need in strace:strace unshare:util-linux flock:util-linux abidiff:abigail-tools; do
        has_program "${need%%:*}" || echo "${need#*:}"
    done
    [ "$1" = fleet ] || return 0
    has_library hiredis || echo libhiredis-dev
    has_program redis-server || has_program valkey-server || echo redis-server
}

apt_get() {
    local -a as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        has_program sudo || die "needs root or sudo to run: apt-get $*"
        as_root=(sudo)
    fi
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@" </dev/null >&2
}

install_by_apt() {
    step "installing $*"
    has_program apt-get || die "install these first (Debian names): $*"
    apt_get update || die "apt-get update failed; install these by hand: $*"
    apt_get install -y --no-install-recommends "$@" || die "apt-get could not install: $*"
}

install_packages() {
    local -a packages
    mapfile -t packages < <(list_missing_packages "$1" | sort -u)
    [ ${#packages[@]} -eq 0 ] || install_by_apt "${packages[@]}"
}

# Sets CUDA_INCLUDE from a toolkit of CUDA 12 or later that has headers and NVRTC both.
find_toolkit() {
    local root library
    [ "${CUBINET_NO_TOOLKIT:-}" != 1 ] || return 1
    for root in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda /opt/cuda /usr; do
        [ -n "$root" ] || continue
        [ -r "$root/include/nvrtc.h" ] || continue
        grep -Eqs '^#define CUDA_VERSION 1[2-9][0-9]{3}' "$root/include/cuda.h" || continue
        for library in "$root"/lib64/libnvrtc.so.1[2-9]* "$root"/lib/libnvrtc.so.1[2-9]* \
            "$root"/targets/*/lib/libnvrtc.so.1[2-9]* "$root"/lib/*-linux-gnu/libnvrtc.so.1[2-9]*; do
            [ -r "$library" ] || continue
            CUDA_INCLUDE=$root/include
            return 0
        done
    done
    return 1
}

has_wheels() {
    [ -r "$1/nvidia/cu13/include/cuda.h" ] && [ -r "$1/nvidia/cu13/include/nvrtc.h" ] &&
        [ -r "$1/nvidia/cu13/lib/libnvrtc.so.13" ]
}

# fetch_into FOLDER REQUIREMENT...: Python wheels, into a folder of their own that is renamed when complete: an interrupted
# download leaves nothing half done behind.
fetch_into() {
    local folder=$1 part=$1.part
    shift
    if ! python3 -m pip --version >/dev/null 2>&1; then
        install_by_apt python3-pip
    fi
    rm -rf "$part" "$folder"
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --no-compile \
        --target "$part" "$@" </dev/null >&2 ||
        die "pip could not fetch $*"
    mv "$part" "$folder"
}

fetch_wheels() {
    local folder=$1
    step "no CUDA toolkit in use: fetching NVRTC and CUDA's headers as Python wheels into $folder"
    fetch_into "$folder" 'nvidia-cuda-nvrtc>=13,<14' 'nvidia-cuda-runtime>=13,<14'
    has_wheels "$folder" || die "the wheels do not hold cuda.h, nvrtc.h and libnvrtc.so.13 where they used to"
}

# Sets CUDA_INCLUDE; with wheels also exports CUBINET_NVRTC, which the library looks at first.
find_cuda() {
    local wheels=$BUILD/cuda-wheels
    if find_toolkit; then
        step "CUDA headers in $CUDA_INCLUDE"
        return
    fi
    has_wheels "$wheels" || fetch_wheels "$wheels"
    CUDA_INCLUDE=$wheels/nvidia/cu13/include
    export CUBINET_NVRTC=$wheels/nvidia/cu13/lib/libnvrtc.so.13
    step "CUDA headers in $CUDA_INCLUDE, CUBINET_NVRTC=$CUBINET_NVRTC"
}

# set_up FOLDER tests|fleet|program [cmake options]: packages, CUDA, configuration. Sets BUILD.
set_up() {
    local folder=$1 purpose=$2
    shift 2
    BUILD=$PWD/${CUBINET_BUILD:-$folder}
    mkdir -p "$BUILD"
    install_packages "$purpose"
    find_cuda
    step "configuring $BUILD"
    # CUDA_H_DIR and NVRTC_H_DIR settle the search, so that a toolkit beside the wheels is not taken after all.
    cmake -S . -B "$BUILD" -DCUBINET_CUDA_INCLUDE="$CUDA_INCLUDE" -DCUBINET_NVRTC_INCLUDE="$CUDA_INCLUDE" \
        -DCUDA_H_DIR="$CUDA_INCLUDE" -DNVRTC_H_DIR="$CUDA_INCLUDE" "$@" >"$BUILD/configure.log" 2>&1 ||
        { cat "$BUILD/configure.log" >&2; die "cmake failed"; }
}

# build_target all|TARGET
build_target() {
    step "building $1 with $JOBS jobs"
    cmake --build "$BUILD" -j "$JOBS" --target "$1" >"$BUILD/build.log" 2>&1 ||
        { grep -E -A6 'error|Error|undefined' "$BUILD/build.log" | head -80 >&2; die "the build failed: $BUILD/build.log"; }
}
