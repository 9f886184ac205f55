// SPDX-License-Identifier: Apache-2.0
// Matrix products and convolutions as machines compute them.
#include <limits>

#include "linalg/conv/conv_places.h"
#include "machine/product_sum.h"
#include "ops/facets/machine_map.h"
#include "ops/linear/multilinear.h"
#include "ops/windows/conv.h"

namespace lipscope {
namespace {

std::uint32_t short_place(Index place) { return static_cast<std::uint32_t>(place); }

bool fits_short(Index size) { return size <= std::numeric_limits<std::uint32_t>::max(); }

// Every label that is summed over is one of both factors: neither can be summed by itself first.
bool is_matrix_product(const Multilinear& form, const Multilinear::Term& term) {
  if (term.inputs.size() != 2 || term.inputs[0] == term.inputs[1]) return false;
  for (std::size_t l = 0; l < form.extents.size(); ++l) {
    const bool first = form.strides[term.inputs[0]][l] != 0;
    const bool second = form.strides[term.inputs[1]][l] != 0;
    if (form.extents[l] > 1 && form.out_strides[l] == 0 && first != second) return false;
  }
  return true;
}

}  // namespace

std::unique_ptr<const MachineStep> multilinear_step(const Multilinear& form,
                                                    const Machine& machine) {
  const Multilinear::Term *product = nullptr, *offset = nullptr;
  for (const Multilinear::Term& term : form.terms) {
    if (term.inputs.size() == 1 && offset == nullptr) {
      offset = &term;
    } else if (product == nullptr && is_matrix_product(form, term)) {
      product = &term;
    } else {
      return nullptr;
    }
  }
  const Index rows = element_count(form.out.shape);
  if (product == nullptr || !is_floating(form.out.type) || !fits_short(rows)) return nullptr;
  ProductSumBuilder builder(static_cast<std::size_t>(rows));
  const std::size_t a = product->inputs[0], b = product->inputs[1];
  for_each_product(form, *product, [&](Index row, std::span<const Index>) {
    builder.count(static_cast<std::size_t>(row));
  });
  builder.start();
  for_each_product(form, *product, [&](Index row, std::span<const Index> place) {
    builder.place(static_cast<std::size_t>(row), short_place(place[a]), short_place(place[b]));
  });
  ProductSum& sum = builder.sum();
  sum.a = a, sum.b = b, sum.factor = product->coefficient;
  if (offset != nullptr) {
    std::vector<Index> uses(static_cast<std::size_t>(rows), 0);
    ProductSum::Offset made{.input = offset->inputs[0],
                            .factor = offset->coefficient,
                            .place = std::vector<std::uint32_t>(uses.size())};
    for_each_product(form, *offset, [&](Index row, std::span<const Index> place) {
      ++uses[static_cast<std::size_t>(row)];
      made.place[static_cast<std::size_t>(row)] = short_place(place[made.input]);
    });
    for (const Index n : uses) {
      if (n != 1) return nullptr;
    }
    sum.offset = std::move(made);
  }
  return product_sum_step(machine, std::move(sum));
}

std::unique_ptr<const MachineStep> conv_step(const ConvForm& form, const Machine& machine) {
  const ConvShape& s = form.shape;
  const Index outputs = s.out_channels * s.output_size(), inputs = s.in_channels * s.input_size();
  const Index rows = s.batch * (form.transposed ? inputs : outputs);
  if (!fits_short(s.batch * outputs) || !fits_short(s.batch * inputs)) return nullptr;
  ProductSumBuilder builder(static_cast<std::size_t>(rows));
  const auto visit = [&](const auto& body) {
    for (Index n = 0; n < s.batch; ++n) {
      for_each_conv_place(s, [&](Index output, Index input, Index weight) {
        const Index o = n * outputs + output, i = n * inputs + input;
        body(static_cast<std::size_t>(form.transposed ? i : o), form.transposed ? o : i, weight);
      });
    }
  };
  visit([&](std::size_t row, Index, Index) { builder.count(row); });
  builder.start();
  visit([&](std::size_t row, Index pixel, Index weight) {
    builder.place(row, short_place(pixel), short_place(weight));
  });
  ProductSum& sum = builder.sum();
  if (form.has_bias) {
    const Index channels = form.transposed ? s.in_channels : s.out_channels;
    const Index positions = form.transposed ? s.input_size() : s.output_size();
    sum.offset.emplace();
    for (Index row = 0; row < rows; ++row)
      sum.offset->place.push_back(short_place(row / positions % channels));
  }
  return product_sum_step(machine, std::move(sum));
}

}  // namespace lipscope
