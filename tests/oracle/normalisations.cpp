// SPDX-License-Identifier: Apache-2.0
// Normalisations and losses.
#include <algorithm>

#include "tests/oracle/functions.h"
#include "tests/oracle/node.h"

namespace oracle {
namespace {

using Entries = std::vector<Number>;

Number mean_of(const Entries& e) {
  Number sum(0);
  for (const Number& x : e) sum = sum + x;
  return sum / Number(static_cast<Index>(e.size()));
}
Number variance_of(const Entries& e, const Number& mean) {
  Number sum(0);
  for (const Number& x : e) sum = sum + (x - mean) * (x - mean);
  return sum / Number(static_cast<Index>(e.size()));
}
// Normalises groups of `size` neighbouring entries; gives their means and inverse deviations.
std::pair<Entries, Entries> standardise(Array& y, Index size, const Number& epsilon, bool centre) {
  Entries means, inverses;
  for (Index g = 0; size > 0 && g < y.size() / size; ++g) {
    const auto first = y.entries.begin() + g * size;
    const Entries e(first, first + size);
    means.push_back(centre ? mean_of(e) : Number(0));
    inverses.push_back(Number(1) / sqrt(variance_of(e, means.back()) + epsilon));
    std::transform(e.begin(), e.end(), first,
                   [&](const Number& x) { return (x - means.back()) * inverses.back(); });
  }
  return {means, inverses};
}

std::vector<Array> batch_normalization(const Node& node) {
  Array y = node.in(0);
  if (node.integer("training_mode", 0) != 0) throw Missing("training");
  const Number epsilon = node.real("epsilon", 1e-5F);
  const Index channels = y.rank() > 1 ? y.dim(1) : 1;
  const bool spatial = node.opset() >= 9 || node.integer("spatial", 1) != 0;
  const Index plane = spatial ? y.size() / (y.dim(0) * channels) : 1;
  const Index period = spatial ? channels : y.size() / y.dim(0);
  for (Index i = 0; i < y.size(); ++i) {
    const Index c = i / plane % period;
    y.at(i) = node.in(1).at(c) * (y.at(i) - node.in(3).at(c)) / sqrt(node.in(4).at(c) + epsilon) +
              node.in(2).at(c);
  }
  return {y};
}

template <bool kCentre>
std::vector<Array> layer_normalization(const Node& node) {
  Array y = node.in(0);
  const Index axis = Node::axis(node.integer("axis", -1), y.rank());
  Dims kept = y.dims;
  Index size = 1;
  for (Index a = axis; a < y.rank(); ++a) {
    size *= y.dim(a);
    kept[Array::to_size(a)] = 1;
  }
  const auto [means, inverses] = standardise(y, size, node.real("epsilon", 1e-5F), kCentre);
  for_each_index(y.dims, [&](const Dims& at, Index i) {
    if (node.has(1)) y.at(i) = y.at(i) * node.in(1).at(broadcast_at(node.in(1).dims, at));
    if (node.has(2)) y.at(i) = y.at(i) + node.in(2).at(broadcast_at(node.in(2).dims, at));
  });
  const Type stash = static_cast<Type>(node.integer("stash_type", onnx::TensorProto::FLOAT));
  return {y, Array(stash, kept, means), Array(stash, kept, inverses)};
}

std::vector<Array> instance_normalization(const Node& node) {
  Array y = node.in(0);
  const Index plane = y.size() / (y.dim(0) * y.dim(1));
  standardise(y, plane, node.real("epsilon", 1e-5F), true);
  for (Index i = 0; i < y.size(); ++i) {
    const Index c = i / plane % y.dim(1);
    y.at(i) = y.at(i) * node.in(1).at(c) + node.in(2).at(c);
  }
  return {y};
}
std::vector<Array> group_normalization(const Node& node) {
  Array y = node.in(0);
  const Index groups = node.integer("num_groups", 1), channels = y.dim(1);
  const Index plane = y.size() / (y.dim(0) * channels);
  standardise(y, plane * channels / groups, node.real("epsilon", 1e-5F), true);
  for (Index i = 0; i < y.size(); ++i) {
    Index c = i / plane % channels;
    if (node.opset() < 21) c /= channels / groups;
    y.at(i) = y.at(i) * node.in(1).at(c) + node.in(2).at(c);
  }
  return {y};
}
std::vector<Array> mean_variance_normalization(const Node& node) {
  Array y = node.in(0);
  const Dims axes = node.integers("axes").value_or(Dims{0, 2, 3});
  Dims kept = y.dims;
  for (const Index a : axes) kept.at(Array::to_size(Node::axis(a, y.rank()))) = 1;
  std::vector<Entries> groups(Array::to_size(count(kept)));
  for_each_index(y.dims, [&](const Dims& at, Index i) {
    groups[Array::to_size(broadcast_at(kept, at))].push_back(y.at(i));
  });
  // The constant of the operator's definition, a float32.
  const Number epsilon(static_cast<double>(1e-9F));
  for_each_index(y.dims, [&](const Dims& at, Index i) {
    const Entries& e = groups[Array::to_size(broadcast_at(kept, at))];
    const Number mean = mean_of(e);
    y.at(i) = (y.at(i) - mean) / (sqrt(variance_of(e, mean)) + epsilon);
  });
  return {y};
}

std::vector<Array> lrn(const Node& node) {
  const Array& x = node.in(0);
  const Number alpha = node.real("alpha", 0.0001F), beta = node.real("beta", 0.75F);
  const Number bias = node.real("bias", 1.0F);
  const Index size = node.integer("size", 1);
  const Lines lines(x.dims, 1);
  Array y(x.type, x.dims);
  for (Index i = 0; i < x.size(); ++i) {
    const Index o = i / (lines.length * lines.inner), c = i / lines.inner % lines.length;
    Number sum(0);
    for (Index k = std::max<Index>(0, c - (size - 1) / 2);
         k <= std::min(lines.length - 1, c + size / 2); ++k) {
      const Number& e = x.at(lines.at(o, k, i % lines.inner));
      sum = sum + e * e;
    }
    y.at(i) = x.at(i) / pow(bias + alpha / Number(size) * sum, beta);
  }
  return {y};
}

// Losses of rows along axis 1.
template <bool kSoftmax>
std::vector<Array> loss(const Node& node) {
  Array logs = node.in(0);
  const Array& targets = node.in(1);
  const Lines lines(logs.dims, 1);
  if (kSoftmax) {
    for (Index o = 0; o < lines.outer; ++o) {
      for (Index i = 0; i < lines.inner; ++i) {
        Number top = Number::infinity(-1), sum(0);
        for (Index k = 0; k < lines.length; ++k) top = max(top, logs.at(lines.at(o, k, i)));
        const Number shift = top.is_exact() ? top : floor(Number(top.middle()));
        for (Index k = 0; k < lines.length; ++k)
          sum = sum + exp(logs.at(lines.at(o, k, i)) - shift);
        const Number lse = shift + log(sum);
        for (Index k = 0; k < lines.length; ++k) {
          logs.at(lines.at(o, k, i)) = logs.at(lines.at(o, k, i)) - lse;
        }
      }
    }
  }
  const auto* ignored = node.find("ignore_index");
  Array y(logs.type, targets.dims);
  Number weights(0), sum(0);
  for (Index i = 0; i < targets.size(); ++i) {
    const Index target = targets.at(i).integer();
    if (ignored != nullptr && ignored->i() == target) continue;
    if (target < 0 || target >= lines.length) throw Undefined("a class that does not exist");
    const Number weight = node.has(2) ? node.in(2).at(target) : Number(1);
    y.at(i) = -(weight * logs.at(lines.at(i / lines.inner, target, i % lines.inner)));
    weights = weights + weight;
    sum = sum + y.at(i);
  }
  const std::string how = node.text("reduction", "mean");
  if (how != "none") y = Array(logs.type, {}, {how == "mean" ? sum / weights : sum});
  return {y, logs};
}

}  // namespace

void add_normalisations(Table& table) {
  table["BatchNormalization"] = batch_normalization;
  table["LayerNormalization"] = layer_normalization<true>;
  table["RMSNormalization"] = layer_normalization<false>;
  table["InstanceNormalization"] = instance_normalization;
  table["GroupNormalization"] = group_normalization;
  table["MeanVarianceNormalization"] = mean_variance_normalization;
  table["LRN"] = lrn;
}
void add_losses(Table& table) {
  table["NegativeLogLikelihoodLoss"] = loss<false>;
  table["SoftmaxCrossEntropyLoss"] = loss<true>;
}

}  // namespace oracle
