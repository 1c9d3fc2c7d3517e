/*
 * Cubinet: a cabinet of cubins. This header brings in all of the public interface.
 *
 *   status.h    statuses and errors            runtime.h   the handle, options, counters
 *   types.h     dtypes, tensors, profiles      ops.h       quantisation, GEMM, plans
 *   template.h  families and candidates        route.h     explain, enumerate, warm, check, prepare
 *   cabinet.h   entries, verification          model.h     config.json to shapes
 *   fleet.h     a server that a fleet shares
 */
#ifndef CUBINET_CUBINET_H
#define CUBINET_CUBINET_H

#include <cubinet/cabinet.h>
#include <cubinet/fleet.h>
#include <cubinet/model.h>
#include <cubinet/ops.h>
#include <cubinet/route.h>
#include <cubinet/runtime.h>
#include <cubinet/status.h>
#include <cubinet/template.h>
#include <cubinet/types.h>

#endif
