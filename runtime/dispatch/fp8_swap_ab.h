/*
 * swap_ab and swap_ab_fused of fp8_gemm: their parameters, and how a call is cut over the SMs.
 */
#ifndef CBN_DISPATCH_FP8_SWAP_AB_H
#define CBN_DISPATCH_FP8_SWAP_AB_H

#include <cubinet/template.h>

/* Parameters of templates/fp8_swap_ab.cuh, in the order of both tables. */
enum cbn__swap_ab_param {
    CBN__SWAP_AB_IN, /* E4M3: codes come through a tensor map; else they are made inside */
    CBN__SWAP_AB_OUT,
    CBN__SWAP_AB_A_SCALE,
    CBN__SWAP_AB_W_SCALE,
    CBN__SWAP_AB_W_GRAN,
    CBN__SWAP_AB_BIAS,
    CBN__SWAP_AB_POW2,
    CBN__SWAP_AB_PROPAGATE,
    CBN__SWAP_AB_PDL,
    CBN__SWAP_AB_VEC,
    CBN__SWAP_AB_BM,    /* tokens of a tile */
    CBN__SWAP_AB_DEEP,  /* stages of twice as many K groups */
    CBN__SWAP_AB_PARAM_COUNT
};

/* The fact room: how the CTAs of all tiles lie on the SMs. */
enum cbn__swap_ab_room {
    CBN__ROOM_BOUNDED, /* within a budget of SMs */
    CBN__ROOM_ALONE,   /* at most one an SM */
    CBN__ROOM_SHARED,  /* several an SM */
    CBN__ROOM_STRIDED, /* more than fit: they stride over the tiles */
};

/* When dependents are launched (templates/fp8_swap_ab.cuh). */
enum cbn__swap_ab_trigger { CBN__TRIGGER_TOP, CBN__TRIGGER_WAITED, CBN__TRIGGER_LOADED };

/* Groups of a CTA's share of K from which its scales, those of single rows above all, leave the ring no shared memory. */
#define CBN__SWAP_AB_SLICE_END 161

extern const struct cbn_param cbn__swap_ab_params[CBN__SWAP_AB_PARAM_COUNT];
extern const struct cbn_param cbn__swap_ab_fused_params[CBN__SWAP_AB_PARAM_COUNT];

/* The geometry of both: a cluster's CTAs share a tile's K, grid.y counts tiles of tokens. */
void cbn__swap_ab_place(const int64_t *params, const int64_t *facts, struct cbn_geometry *ret_geometry);

#endif
