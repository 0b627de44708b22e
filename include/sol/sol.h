// All public headers. Each can also be included alone.
#ifndef SOL_SOL_H
#define SOL_SOL_H

#include "sol/collective.h"
#include "sol/context.h"
#include "sol/device.h"
#include "sol/dtype.h"
#include "sol/fabric.h"
#include "sol/model.h"
#include "sol/occupancy.h"
#include "sol/op.h"
#include "sol/ops.h"
#include "sol/roofline.h"
#include "sol/status.h"
#include "sol/version.h"

#endif
