// SPDX-License-Identifier: Apache-2.0
// Where OpenBLAS chooses kernels below what the processor can do, the program starts itself again,
// once, with OPENBLAS_CORETYPE set: OpenBLAS reads it only while it is loaded. That happens before
// any library is initialised, so that a start costs no more than loading it. Not where the user set
// the variable.
#pragma once

namespace lipscope::app {

// Takes what the restart left out of the environment. To be called first in main.
void forget_restart();

}  // namespace lipscope::app
