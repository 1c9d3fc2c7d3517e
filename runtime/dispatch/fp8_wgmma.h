/*
 * wgmma of fp8_gemm, products of many tokens on Hopper: its parameters, and which tile a product is cut into.
 */
#ifndef CBN_DISPATCH_FP8_WGMMA_H
#define CBN_DISPATCH_FP8_WGMMA_H

#include <stdbool.h>

#include <cubinet/template.h>

/* Parameters of templates/fp8_wgmma.cuh. IN stands where that of swap_ab does. */
enum cbn__wgmma_param {
    CBN__WGMMA_IN, /* always E4M3 */
    CBN__WGMMA_OUT,
    CBN__WGMMA_A_SCALE,
    CBN__WGMMA_W_SCALE,
    CBN__WGMMA_W_GRAN,
    CBN__WGMMA_BIAS,
    CBN__WGMMA_PDL,
    CBN__WGMMA_VEC,
    CBN__WGMMA_BM, /* rows of A, and of W, in a tile */
    CBN__WGMMA_BN,
    CBN__WGMMA_WARPGROUPS,
    CBN__WGMMA_ALONG_K,
    CBN__WGMMA_PARTS,
    CBN__WGMMA_SPLIT,
    CBN__WGMMA_RESIDENT,
    CBN__WGMMA_ORDER,
    CBN__WGMMA_TRIGGER,
    CBN__WGMMA_PARAM_COUNT
};

extern const struct cbn_param cbn__wgmma_params[CBN__WGMMA_PARAM_COUNT];

/* The first extents that the template's 32-bit counts of tiles are not sure to hold. */
#define CBN__WGMMA_ROWS_END (INT64_C(1) << 22)
#define CBN__WGMMA_COLUMNS_END (INT64_C(1) << 20)

/*
 * The fact `tile` tells values of m apart only by ceil(m / CBN__WGMMA_STEP), and none from CBN__WGMMA_STEPS_END on:
 * what an enumeration has to visit.
 */
#define CBN__WGMMA_STEP 64
#define CBN__WGMMA_STEPS_END (256 * CBN__WGMMA_STEP)

/* Widest tile by narrowest step: the boxes of W that any tile asks for are (i + 1) * CBN__WGMMA_BOX_UNIT rows high. */
#define CBN__WGMMA_BOX_UNIT 32
#define CBN__WGMMA_BOX_COUNT 6

/* Number of the tile for these facts, from all but `tile` itself. */
int64_t cbn__wgmma_choose(const int64_t *facts);

/* Whether these facts' tile is for their form: the choice sees to it, an enumeration that combines facts does not. */
bool cbn__wgmma_can_be(const int64_t *facts);

/* How many tiles there are to choose from; whether one of them takes boxes of W so high. */
int64_t cbn__wgmma_tile_count(void);
bool cbn__wgmma_has_box(uint32_t rows);

/* How a launch is cut, from facts that hold the choice. */
struct cbn__wgmma_cut {
    int64_t ranks;           /* CTAs of a cluster that copy a tile's rows of A together */
    int64_t clusters;        /* of ranks x SPLIT CTAs; they take tiles in turn */
    int64_t band;            /* rows of tiles that are walked together */
    uint32_t a_rows, w_rows; /* of one copy */
    uint32_t out_columns;    /* of a box of D, by CBN__WGMMA_STEP rows; 0: D has no map */
};

struct cbn__wgmma_cut cbn__wgmma_cut_of(const int64_t *facts);

void cbn__wgmma_place(const int64_t *params, const int64_t *facts, struct cbn_geometry *ret_geometry);

#endif
