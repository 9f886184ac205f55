// SPDX-License-Identifier: Apache-2.0
#include "lipscope/op.h"

#include "base/check.h"

namespace lipscope {

void Op::jvp(const JvpArgs&) const { LIPSCOPE_CHECK(!"operator has no jvp"); }
void Op::vjp(const VjpArgs&) const { LIPSCOPE_CHECK(!"operator has no vjp"); }
std::optional<std::vector<Box>> Op::range(std::span<const Box>) const { return std::nullopt; }
std::optional<Gain> Op::gain(const GainQuery&) const { return std::nullopt; }
bool Op::matrix(const MatrixQuery&, const EntryVisitor&) const { return false; }
std::optional<Relaxation> Op::relax(std::span<const Box>) const { return std::nullopt; }

}  // namespace lipscope
