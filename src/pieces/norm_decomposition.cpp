// SPDX-License-Identifier: Apache-2.0
#include "pieces/norm_decomposition.h"

#include <algorithm>

#include "base/rounding.h"
#include "net/small.h"

namespace lipscope {
namespace {

constexpr Index kMostSigns = 10;  // rows to be added: 512 parts

NormDecomposition with_signs(bool transposed, double norm, Index rows) {
  return {.transposed = transposed, .signs = true, .norm = norm, .count = Index{1} << (rows - 1)};
}

// The last layer's rows added with all signs.
void add_signed_rows(DenseLayer& last, Index count) {
  DenseLayer sums{last.in, count, {}, {}, {}, {}, {}, {}, {}};
  sums.bias.assign(to_size(count), point(0));
  for (Index part = 0; part < count; ++part) {
    for (Index j = 0; j < last.in; ++j) {
      Interval sum = point(0);
      for (Index i = 0; i < last.out; ++i) {
        const double radius = last.radius.empty() ? 0 : last.radius_row(i)[j];
        const Interval weight{sub_down(last.row(i)[j], radius), add_up(last.row(i)[j], radius)};
        sum = sum + (NormDecomposition::sign(part, i) < 0 ? -weight : weight);
      }
      sums.weights.push_back(midpoint(sum));
      sums.radius.push_back(radius_up(sum));
    }
  }
  if (std::ranges::all_of(sums.radius, [](double r) { return r == 0; })) sums.radius.clear();
  last = std::move(sums);
}

}  // namespace

std::optional<NormDecomposition> decomposition_of(const NormPair& norms, Index inputs,
                                                  Index outputs) {
  const double p = norms.in.p(), q = norms.out.p();
  const auto simple = [](double e) { return e == 1 || e == 2 || e == kInf; };
  const double dual = p == 1 ? kInf : p == 2 ? 2 : 1;  // of p
  if (outputs == 1 || q == kInf) {
    if (!simple(p)) return std::nullopt;
    return NormDecomposition{.norm = dual, .count = outputs};
  }
  if (p == 1 || inputs == 1)
    return simple(q)
               ? std::optional(NormDecomposition{.transposed = true, .norm = q, .count = inputs})
               : std::nullopt;
  if (p == 2 && q == 2) return NormDecomposition{.whole = true};
  const bool by_rows = q == 1 && (p == 2 || p == kInf) && outputs <= kMostSigns;
  const bool by_columns = p == kInf && (q == 1 || q == 2) && inputs <= kMostSigns;
  if (by_rows && !(by_columns && inputs < outputs)) return with_signs(false, dual, outputs);
  if (by_columns) return with_signs(true, q, inputs);
  return std::nullopt;
}

std::optional<NormDecomposition> search_decomposition_of(const NormPair& norms, Index inputs,
                                                         Index outputs) {
  if (const auto parts = decomposition_of(norms, inputs, outputs)) return parts;
  const double p = norms.in.p(), q = norms.out.p();
  if ((p != 2 && p != kInf) || (q != 1 && q != 2)) return std::nullopt;
  return NormDecomposition{.weighted = true, .from = p, .to = q};
}

ComponentNet::ComponentNet(const LayeredNet& net, const NormDecomposition& parts)
    : net_(net), transposed_(parts.transposed) {
  if (parts.transposed) own_ = transposed(net);
  if (!parts.signs) return;
  if (!own_) own_ = net;
  add_signed_rows(own_->layers.back(), parts.count);
}

Slopes ComponentNet::slopes(Slopes of_net) const {
  if (transposed_) std::ranges::reverse(of_net);
  return of_net;
}

}  // namespace lipscope
